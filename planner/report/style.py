"""The report's style sheet: light and dark, narrow and wide, screen and paper."""

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1b2230;--soft:#566074;--line:#d5dae3;--card:#f4f6fa;
--c1:#1f5fbf;--c2:#b4540a;--c3:#2b7a3d;--c4:#8a3ea8;--c5:#a3263f;--c6:#4d5a6b;--c7:#0b6f78;--c8:#6b5b00;
--ok:#1d6b35;--warn:#8a4b00;--stop:#a01c2c;--on:#fff}
@media (prefers-color-scheme:dark){:root{--bg:#11151c;--ink:#e8ecf3;--soft:#a6b0c0;--line:#333c4a;--card:#1a202a;
--c1:#7db1ff;--c2:#ffb066;--c3:#7fd18f;--c4:#d9a2f2;--c5:#ff9aa8;--c6:#b4bfce;--c7:#6fd3dd;--c8:#d8c860;
--ok:#8fdca4;--warn:#ffc56b;--stop:#ff9aa8;--on:#11151c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:980px;padding:1.2rem;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
h3{font-size:1.02rem;margin:1.2rem 0 .3rem}
p,figcaption{max-width:70ch}
.soft,figcaption,caption{color:var(--soft)}
.badge{display:inline-block;min-width:4.2em;text-align:center;padding:0 .55em;border-radius:.3em;
font-size:.85rem;font-weight:700;color:var(--on);background:var(--c6)}
.badge.ok{background:var(--ok)}.badge.warn{background:var(--warn)}.badge.stop{background:var(--stop)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:.6rem;margin:1rem 0;padding:0}
.cards div{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.5rem .7rem}
.cards dt{font-size:.85rem;color:var(--soft)}.cards dd{margin:0;font-size:1.3rem;font-weight:650}
.cards small{display:block;font-size:.8rem;font-weight:400;color:var(--soft)}
ul.findings{list-style:none;padding:0}
ul.findings li{display:grid;grid-template-columns:auto 1fr;gap:.2rem .7rem;padding:.5rem 0;
border-bottom:1px solid var(--line)}
ul.findings p{margin:0;grid-column:2}
.scroll{overflow-x:auto;margin:.5rem 0}
.scroll:focus-visible,a:focus-visible{outline:2px solid var(--c1);outline-offset:2px}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.2rem 0}
th,td{text-align:left;padding:.25rem .7rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right}.n,.k{white-space:nowrap}
code{font-size:.92em;overflow-wrap:anywhere}
a{color:var(--c1)}
figure{margin:.8rem 0}
svg{display:block;max-width:100%;height:auto}
svg text{font:12.5px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
svg text.ref{font-weight:600}
svg text.in{fill:var(--on);font-weight:700}
.narrow{display:none}
@media (max-width:760px){.wide{display:none}.narrow{display:block}body{padding:.8rem}}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1.2}
.rule{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:2 4}
.cross{stroke:var(--stop);stroke-width:2;fill:none}
.line{fill:none;stroke-width:2.2;stroke-linejoin:round}
.s1{stroke:var(--c1)}.s2{stroke:var(--c2);stroke-dasharray:9 4}.s3{stroke:var(--c3);stroke-dasharray:3 3}
.s4{stroke:var(--c4);stroke-dasharray:12 3 3 3}.s5{stroke:var(--c5);stroke-dasharray:1 4}
.s6{stroke:var(--c6);stroke-dasharray:6 6}
.s7{stroke:var(--c7);stroke-dasharray:14 6}.s8{stroke:var(--c8);stroke-dasharray:4 2 1 2}
.dot{stroke-dasharray:none;stroke-width:1.6;fill:var(--bg)}
.fill{stroke:var(--bg);stroke-width:1.5}
.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}.f6{fill:var(--c6)}
.f7{fill:var(--c7)}.f8{fill:var(--c8)}
@media print{:root{color-scheme:light;--bg:#fff;--ink:#000;--soft:#333;--line:#bbb;--card:#fff}
body{max-width:none;padding:0;font-size:11pt}.scroll{overflow:visible}h2,h3{break-after:avoid}
figure,tr,ul.findings li,.cards div{break-inside:avoid}.badge{border:1px solid #000}}
"""
