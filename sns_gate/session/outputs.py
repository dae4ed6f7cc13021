"""Whether both sides' calls return the same: structure, types and shapes, and every element.

The tolerances are ``torch.testing``'s by type, with three differences. What is allowed absolutely
is at least the relative tolerance times the output's own scale: an element that happens to lie near
zero has the rounding of the sum that it came from, not of its own size. It is at most a hundredth
of that scale, so that small outputs are compared too. And of 16 bits four steps are allowed and
not one, because code that rounds less often is not wrong.
"""

from __future__ import annotations

import math
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sns_gate import protocol
from sns_gate.errors import CallRaised, WorkerError
from sns_gate.session.blocks import Worker, receive_both
from sns_gate.session.returned import NARROW_STARTS, Node, Output
from sns_gate.temporary import own_prefix
from sns_gate.types import CHECKED, OutputCheck, Reason

#: Relative and absolute tolerance by type; of every other type all elements must be equal.
TOLERANCES = {
    "float16": (4e-3, 1e-5), "bfloat16": (3.2e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex32": (4e-3, 1e-5), "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NARROW = (0.125, 1e-3)
#: Types of single numbers that are coarser than Python's, the coarsest last.
_COARSE = ("float32", "float16")
_CHUNK = 1 << 22
_KEY_BITS = 63
#: So many times what the same answer may differ by is another answer.
_CLEARLY = 10.0
#: Of an answer, that show whether it follows its inputs.
#: How much longer a call may take on values that it does not expect.
_LONGER, _GRACE_S = 10.0, 10.0
_SAMPLE_BYTES = 1 << 20
_SMALL, _FAR, _LOOKED_AT = 0.01, 10.0, 1 << 20

Floats = NDArray[np.float64] | NDArray[np.complex128]


@dataclass(frozen=True)
class Compared:
    """What came of comparing.

    Attributes:
        wrong: where the outputs differ, None where they do not.
        notes: what could not be compared.
    """

    wrong: Reason | None = None
    notes: tuple[Reason, ...] = ()


def compare_outputs(
    pair: tuple[Worker, Worker],
    check: OutputCheck,
    seed: int,
    timeout_s: float,
    *,
    poison: bool = False,
    reach: bool = False,
) -> Compared:
    """Have both sides call the placed case once more, seeded alike, and compare what they return.

    Digests under a key of this moment are compared first; the elements are written only where
    those differ, which of identical code is seldom.

    Args:
        pair: the baseline's and the candidate's worker, with the case in place.
        check: what the benchmark asks.
        seed: for random generators.
        timeout_s: for one call and writing what it returned.
        poison: whether what both returned is overwritten before they are called once more.
        reach: whether they look which arrays they hold, for ``kept_answer``.

    Raises:
        WorkerError: a call failed, or a worker wrote nothing that can be read.
    """
    if not check.wanted:
        text = "its benchmark asks that outputs are not compared, so faster may be wrong"
        return Compared(notes=(Reason(code="outputs-unchecked", text=text),))
    with _folder_for(pair) as folder:
        request = protocol.WriteOutput("", seed, poison=poison, reach=reach)
        if check.own:
            return _judged(pair[0], _written(pair, folder, request, timeout_s), timeout_s)
        keyed = replace(request, key=secrets.randbits(_KEY_BITS))
        baseline, candidate = _written(pair, folder, keyed, timeout_s)
        if not _same_bits(baseline.tree, candidate.tree):
            again = protocol.WriteOutput("", seed, again=True)
            baseline, candidate = _written(pair, folder, again, timeout_s)
        return _compared(baseline, candidate, check)


class LostByRenewal(Exception):  # noqa: N818 (what happened)
    """A worker is gone that was given values which its code does not expect."""


def kept_answer(pair: tuple[Worker, Worker], seed: int, timeout_s: float) -> Reason | None:
    """Whether the candidate's answer stays what it was where its inputs get other values.

    The baseline's answer has to change with them, so work that does not depend on them is no cheat.
    The candidate's change is by more than what is not the same twice, such as a sum in whatever
    order, and the baseline's by far more. The arrays that both sides hold alike are renewed. Where
    there are none, as in an object of the candidate's own, or not the same could be written to, the
    answers say nothing; nor do they where a call cannot work on what it is given.

    Both sides have told before which arrays they hold, by ``compare_outputs`` with ``reach``.

    Args:
        pair: the baseline's and the candidate's worker, with the case in place.
        seed: for random generators.
        timeout_s: for one call and writing what it returned.

    Raises:
        WorkerError: as ``compare_outputs``.
        LostByRenewal: a worker ended or hung on such values, which no fault of its code follows
            from.
    """
    with _folder_for(pair) as folder:
        few = protocol.WriteOutput("-before", seed, most_bytes=_SAMPLE_BYTES)
        start_s = time.monotonic()
        before = _written(pair, folder, few, timeout_s)
        limit_s = min(timeout_s, _LONGER * (time.monotonic() - start_s) + _GRACE_S)
        # A buffer for what is computed holds whatever was there before, and not the same twice.
        shared = tuple(sorted(set(before[0].reached) & set(before[1].reached)))
        if not shared:
            return None
        renewed = replace(few, stem="-after", renew=shared)
        try:
            after = _written(pair, folder, renewed, limit_s)
        except WorkerError as error:  # such values are none that it can work on
            if isinstance(error, CallRaised) and not error.fatal:
                return None
            raise LostByRenewal from None
        if not (after[0].renewed and after[1].renewed):
            return None
        baseline, candidate = (
            _compared(one, other, CHECKED, slack=slack).wrong is not None
            for one, other, slack in zip(before, after, (_CLEARLY, 1.0), strict=True)
        )
        if candidate or not baseline:
            return None
    text = "after its inputs had got other values it returned what it had kept from before"
    return Reason(code="output-kept", text=text)


@contextmanager
def _folder_for(pair: tuple[Worker, Worker]) -> Iterator[Path]:
    """A folder that both workers write in."""
    # A worker may write while this is interrupted; the check's own end takes away what is left.
    with (
        tempfile.TemporaryDirectory(
            prefix=f"{own_prefix()}outputs-", ignore_cleanup_errors=True
        ) as folder,
        pair[0].lent(Path(folder)),
    ):
        yield Path(folder)


def _written(
    pair: tuple[Worker, Worker],
    folder: Path,
    request: protocol.WriteOutput,
    timeout_s: float,
) -> tuple[Output, Output]:
    """Both sides' outputs of one more call, each in the folder under its side's name."""
    stems = [folder / f"{worker.side}{request.stem}" for worker in pair]
    for worker, stem in zip(pair, stems, strict=True):
        worker.send(replace(request, stem=str(stem)))
    replies = receive_both(pair, protocol.OutputWritten, timeout_s)
    baseline, candidate = (
        Output.read(stem, worker, reply)
        for stem, worker, reply in zip(stems, pair, replies, strict=True)
    )
    return baseline, candidate


def _judged(baseline: Worker, outputs: tuple[Output, Output], timeout_s: float) -> Compared:
    """What the benchmark's own comparator says, in the baseline's process and from its files."""
    stems = (str(output.data.with_suffix("")) for output in outputs)
    answer = baseline.ask(protocol.JudgeOutputs(*stems), protocol.OutputsJudged, timeout_s)
    if not answer.text:
        return Compared(notes=_notes(*outputs))
    text = f"the benchmark's own comparator finds both outputs unlike: {answer.text}"
    return Compared(wrong=Reason(code="outputs-differ", text=text))


def _compared(
    baseline: Output, candidate: Output, check: OutputCheck, *, slack: float | None = None
) -> Compared:
    """Compare all, or until one element differs by more than the tolerances times a slack."""
    if _same_bits(baseline.tree, candidate.tree):
        return Compared(notes=_notes(baseline, candidate))
    comparison = _Comparison(baseline, candidate, check, slack)
    for text in comparison.differences(baseline.tree, candidate.tree, ""):
        return Compared(wrong=Reason(code="outputs-differ", text=text))
    return Compared(notes=_notes(baseline, candidate))


def _same_bits(baseline: Node, candidate: Node) -> bool:
    """Whether two descriptions by digests are of the same, bit for bit."""
    arrays = [node for node in _every(baseline) if node.kind == "array"]
    return baseline == candidate and all(node.digest for node in arrays)


def _notes(baseline: Output, candidate: Output) -> tuple[Reason, ...]:
    """What of two outputs could not be compared, or in part."""
    nothing = next(_uncompared(baseline.tree, candidate.tree, ""), "")
    if nothing:
        text = f"its output could not be compared: {nothing}; return what it computes"
        return (Reason(code="outputs-unchecked", text=text),)
    if any(node.step > 1 for node in _every(baseline.tree)):
        text = "of its largest outputs only elements at even distances were compared"
        return (Reason(code="outputs-sampled", text=text),)
    return ()


def _every(node: Node) -> Iterator[Node]:
    yield node
    for item in node.items:
        yield from _every(item)


def _uncompared(baseline: Node, candidate: Node, where: str) -> Iterator[str]:
    """Parts of which nothing is known."""
    if baseline.kind == candidate.kind == "none" and not where:
        yield "the callable returns nothing"
    failed = next((one for one in (baseline, candidate) if one.form == "failed"), None)
    if failed is not None:
        yield f"{where or 'it'} could not be read, a {failed.type[:100]}"
    elif baseline.kind == candidate.kind == "opaque":
        yield f"{where or 'it'} is a {baseline.type[:100]}"
    for one, other, key in zip(baseline.items, candidate.items, baseline.keys, strict=False):
        yield from _uncompared(one, other, f"{where}[{key[:50]}]")


@dataclass(frozen=True)
class _Comparison:
    """Both sides' outputs, how far apart their elements may be, and how far one alone may be."""

    baseline: Output
    candidate: Output
    check: OutputCheck
    slack: float | None

    def differences(self, baseline: Node, candidate: Node, where: str) -> Iterator[str]:
        """Where they differ, in words; ``where`` is the path to the part."""
        name = f"output{where}"
        if "failed" in (baseline.form, candidate.form):
            return  # what could not be read is no difference, and is said
        if _class_of(baseline) != _class_of(candidate):
            yield f"{name} is {_kind(candidate)}, and the baseline's is {_kind(baseline)}"
        elif (baseline.keys, baseline.shape) != (candidate.keys, candidate.shape):
            yield f"{name} has {_form(candidate)}, and the baseline's has {_form(baseline)}"
        elif baseline.kind == "array":
            yield from self._unequal(baseline, candidate, name)
        elif baseline.kind == "float":
            yield from self._unequal_floats(baseline, candidate, name)
        elif baseline.text != candidate.text:
            yield f"{name} is {candidate.text[:80]}, and the baseline's is {baseline.text[:80]}"
        for one, other, key in zip(baseline.items, candidate.items, baseline.keys, strict=False):
            yield from self.differences(one, other, f"{where}[{key[:50]}]")

    def _unequal_floats(self, baseline: Node, candidate: Node, name: str) -> Iterator[str]:
        # A number of Python's is often one of 32 bits that was taken out of an array.
        forms = [node.form for node in (baseline, candidate) if node.form in _COARSE]
        rtol, atol = self._tolerance(max(forms, key=_COARSE.index, default="float32"))
        try:
            ours, theirs = float(candidate.text), float(baseline.text)
        except ValueError:
            yield f"{name} is no number"
            return
        if self.check.atol is None:
            atol = min(atol, _SMALL * abs(theirs))
        same = math.isnan(ours) and math.isnan(theirs)
        if not same and not math.isclose(ours, theirs, rel_tol=rtol, abs_tol=atol):
            yield f"{name} is {ours!r}, and the baseline's is {theirs!r}"

    def _tolerance(self, type_: str) -> tuple[float, float]:
        narrow = type_.startswith(NARROW_STARTS)
        rtol, atol = _NARROW if narrow else TOLERANCES.get(type_, (0.0, 0.0))
        given, slack = self.check, self.slack or 1.0
        return (
            slack * (rtol if given.rtol is None else given.rtol),
            slack * (atol if given.atol is None else given.atol),
        )

    def _unequal(self, baseline: Node, candidate: Node, name: str) -> Iterator[str]:
        """The elements that differ, counted, with the largest difference and where it is."""
        theirs, ours = self.baseline.array(baseline), self.candidate.array(candidate)
        if theirs.size != ours.size:
            yield f"{name} has {ours.size} elements on disk, and the baseline's has {theirs.size}"
            return
        if np.array_equal(theirs.view(np.uint8), ours.view(np.uint8)):
            return
        rtol, atol = self._tolerance(baseline.type)
        if rtol and self.check.atol is None:
            scale = _scale(theirs, baseline.type)
            atol = max(min(atol, _SMALL * scale), rtol * scale)
        allowed = atol
        count, worst, at = 0, -1.0, 0
        for start in range(0, theirs.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            apart = _too_far((theirs[part], ours[part]), baseline.type, allowed, rtol)
            count += int((apart >= 0).sum())
            peak = int(apart.argmax())
            if apart[peak] > worst:
                worst, at = float(apart[peak]), start + peak
            if count and self.slack is not None:
                break
        if count:
            place = np.unravel_index(at * baseline.step, baseline.shape) if baseline.shape else ()
            index = ", ".join(str(int(part)) for part in place)
            pair = (_wide(side[at : at + 1], baseline.type)[0] for side in (ours, theirs))
            found, expected = (f"{value:.6g}" for value in pair)
            yield (
                f"{name}: {count} of {theirs.size} elements differ by more than {rtol:g} of their "
                f"size and {allowed:.2g}, most at [{index}], where {found} stands for {expected}"
            )


def _class_of(node: Node) -> tuple[str, str, str]:
    return node.kind, node.type, node.of


def _kind(node: Node) -> str:
    return {
        "none": "nothing",
        "float": f"the float {node.text[:80]}",
        "exact": f"the {node.type[:80]} {node.text[:80]}",
        "array": f"an array of {node.type[:80]}{f' and class {node.of[:80]}' if node.of else ''}",
    }.get(node.kind, f"a {node.type[:80]}")


def _form(node: Node) -> str:
    if node.shape or node.kind == "array":
        return f"the shape {node.shape}"
    few = 5
    more = ", …" if len(node.keys) > few else ""
    return f"the parts {', '.join(key[:40] for key in node.keys[:few])}{more}"


def _too_far(
    pair: tuple[NDArray[np.generic], NDArray[np.generic]], type_: str, allowed: float, rtol: float
) -> NDArray[np.float64]:
    """How far elements are apart where that is too far, and -1 where it is not."""
    apart = _apart(_wide(pair[0], type_), _wide(pair[1], type_), allowed, rtol)
    if type_.startswith(("int", "uint")) and not (rtol or allowed):  # doubles round large ones
        apart = np.where((pair[0] != pair[1]) & (apart < 0), 0.0, apart)
    return apart


def _apart(one: Floats, other: Floats, allowed: float, rtol: float) -> NDArray[np.float64]:
    """How far elements are apart where that is too far, and -1 where it is not."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(other - one)
        near = np.isfinite(one) & (apart <= allowed + rtol * np.abs(one)) | (one == other)
    near |= np.isnan(one) & np.isnan(other)
    found: NDArray[np.float64] = np.where(near, -1.0, np.nan_to_num(apart, nan=math.inf))
    return found


def _scale(values: NDArray[np.generic], type_: str) -> float:
    """The size of an output's ordinary elements: the root mean square without the far ones.

    A mask of -1e9 beside attention scores must not make all of the scores count as near.
    """
    step = max(1, values.size // _LOOKED_AT)
    sizes = np.abs(_wide(values[::step], type_))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not sizes.size:
        return 0.0
    near = sizes[sizes <= _FAR * np.median(sizes)]
    return float(np.sqrt(np.mean(np.square(near))))


def _wide(values: NDArray[np.generic], type_: str) -> Floats:
    """In double precision, which holds every element of the types with a tolerance."""
    if type_ == "bfloat16":
        values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if values.dtype.kind == "c":
        return values.astype(np.complex128)
    return values.astype(np.float64)
