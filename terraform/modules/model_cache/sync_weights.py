"""Download the chosen files of a Hugging Face commit and verify each one; runs in CodeBuild, standard library only."""

import fnmatch
import hashlib
import json
import os
import pathlib
import sys
import urllib.parse
import urllib.request

HUB = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
CHUNK = 1 << 20


def listing(repository, revision):
    """Every file of the commit, as the hub describes it (page after page)."""
    url = f"{HUB}/api/models/{repository}/tree/{revision}?recursive=true"
    entries = []
    while url:
        with urllib.request.urlopen(url, timeout=60) as answer:
            entries += json.load(answer)
            url = next_page(answer.headers.get("Link", ""))
    return [entry for entry in entries if entry["type"] == "file"]


def next_page(link):
    for part in link.split(","):
        target, _, attributes = part.partition(";")
        if 'rel="next"' in attributes:
            return target.strip(" <>")
    return None


def download(url, target):
    """Fetch to a file; returns its SHA-256."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=60) as answer, target.open("wb") as file:
        while chunk := answer.read(CHUNK):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def blob_id(target):
    """Git's own checksum: small files have no other at the hub."""
    data = target.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def faults(entry, target, sha256, pinned):
    """Every checksum that does not agree."""
    found = []
    published = (entry.get("lfs") or {}).get("oid")
    if published and sha256 != published:
        found.append(f"{entry['path']}: sha256 {sha256}, the repository says {published}")
    if not published and blob_id(target) != entry["oid"]:
        found.append(f"{entry['path']}: git blob {blob_id(target)}, the repository says {entry['oid']}")
    expected = pinned.get(entry["path"])
    if expected and sha256 != expected:
        found.append(f"{entry['path']}: sha256 {sha256}, weights_sha256 says {expected}")
    return found


def main(folder):
    repository, revision = os.environ["WEIGHTS_REPOSITORY"], os.environ["WEIGHTS_REVISION"]
    patterns, pinned = json.loads(os.environ["WEIGHTS_FILES"]), json.loads(os.environ["WEIGHTS_SHA256"])
    entries = listing(repository, revision)
    wanted = [entry for entry in entries if any(fnmatch.fnmatch(entry["path"], pattern) for pattern in patterns)]
    paths = [entry["path"] for entry in wanted]
    wrong = [f"no file matches {pattern}" for pattern in patterns if not fnmatch.filter(paths, pattern)]
    wrong += [f"weights_sha256 names {path}, which weights_files leaves out" for path in pinned if path not in paths]

    sums = []
    for entry in wanted:
        target = folder / entry["path"]
        url = f"{HUB}/{repository}/resolve/{revision}/{urllib.parse.quote(entry['path'])}"
        sha256 = download(url, target)
        wrong += faults(entry, target, sha256, pinned)
        sums.append(f"{sha256}  {entry['path']}\n")
        print(f"{entry['path']} {target.stat().st_size} bytes sha256 {sha256}", flush=True)
    if wrong:
        print("\n".join(["refused:", *wrong]), file=sys.stderr)
        return 1
    (folder / "SHA256SUMS").write_text("".join(sorted(sums)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
