"""Is a submission about its task, and all of its documents?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.manifests import Digests, Manifest, grouping_digest
from hedge_tasks.io.sources import PACKAGE_SCHEME


@dataclass(frozen=True)
class Coverage:
    """How many of a task's documents a submission has.

    Attributes:
        matched: documents that are the task's: same id, question, reference, group and, where stated, pictures.
        of: documents of the task; None where no manifest says.
        foreign: ids of documents that are not the task's.
        certain: whether the manifest is of the very data that the submission names, so that foreign documents are made
            up, and not those of another revision.
    """

    matched: int
    of: int | None
    foreign: tuple[str, ...] = ()
    certain: bool = False

    @property
    def whole(self) -> bool | None:
        """None where no manifest says."""
        return None if self.of is None else self.matched == self.of and not self.foreign

    @property
    def share(self) -> float | None:
        return None if not self.of else self.matched / self.of


def coverage_of(submission: Mapping[str, Any], manifests: Sequence[Manifest]) -> Coverage:
    """Compare a submission with the manifests of its task; the one that knows most of its documents counts."""
    if not manifests:
        return Coverage(len(submission["documents"]), None)
    coverages = [_coverage(submission, manifest) for manifest in manifests]
    return max(coverages, key=lambda coverage: (coverage.certain, coverage.matched))


def _coverage(submission: Mapping[str, Any], manifest: Manifest) -> Coverage:
    foreign = [document["id"] for document in submission["documents"] if not _is_known(document, manifest.documents)]
    recorded = submission["settings"].get("documents")
    revision = recorded.get("revision") if isinstance(recorded, Mapping) else None
    of_package = manifest.data.path.startswith(PACKAGE_SCHEME)
    certain = of_package or (manifest.data.revision is not None and manifest.data.revision == revision)
    matched = len(submission["documents"]) - len(foreign)
    return Coverage(matched, len(manifest.documents), tuple(foreign), certain)


def _is_known(document: Mapping[str, Any], manifest: Mapping[str, Digests]) -> bool:
    expected = manifest.get(document["id"])
    if expected is None:
        return False
    digests = Digests(**document["digests"], grouping=grouping_digest(document["group"], document["question_type"]))
    # Pictures may be missing (a run that was judged again has none on record); texts may not.
    complete = digests.question is not None and digests.reference is not None
    return complete and digests.agrees_with(expected)
