"""List operations: filter by name, newest first unless asked otherwise, in pages."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.aws.service import Params

PAGE = 100
_SHOWN = ("Name", "Arn", "Status")


def listed(params: Params, result: str, kind: str, items: Iterable[Params]) -> Params:
    """One page of summaries; ``kind`` prefixes the names of fields (EndpointName, EndpointArn, ...)."""
    wanted = [item for item in items if params.get("NameContains", "") in item[f"{kind}Name"]]
    if status := params.get("StatusEquals"):
        wanted = [item for item in wanted if item[f"{kind}Status"] == status]
    by = f"{kind}Name" if params.get("SortBy") == "Name" else "CreationTime"
    wanted.sort(key=lambda item: item[by], reverse=params.get("SortOrder", "Descending") == "Descending")
    start = int(params.get("NextToken", 0))
    end = start + params.get("MaxResults", PAGE)
    answer: Params = {result: [_summary(kind, item) for item in wanted[start:end]]}
    if end < len(wanted):
        answer["NextToken"] = str(end)
    return answer


def _summary(kind: str, item: Params) -> Params:
    fields = [f"{kind}{name}" for name in _SHOWN] + ["CreationTime", "LastModifiedTime"]
    return {name: item[name] for name in fields if name in item}
