"""Loads benchmarks, sets cases up and samples them; it decides nothing about the numbers."""

from __future__ import annotations

import gc
import inspect
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from sns_gate import discovery
from sns_gate.env import toolchain
from sns_gate.protocol import (
    VERSION,
    Calibrate,
    Calibrated,
    CaseSpec,
    Hello,
    JudgeOutputs,
    Load,
    Loaded,
    LoadFailure,
    OutputsJudged,
    OutputWritten,
    Place,
    Placed,
    ProfileCall,
    Profiled,
    Prove,
    Proven,
    Ready,
    Recipe,
    Rehearse,
    Release,
    Released,
    Sampled,
    TakeSample,
    WriteOutput,
)
from sns_gate.timers import Timer, open_timer, seed_everything
from sns_gate.worker import isolation
from sns_gate.worker.errors import traceback_of
from sns_gate.worker.inputs import moved, reachable, renewed, snapshot
from sns_gate.worker.judging import judge
from sns_gate.worker.outputs import overwrite, write_output
from sns_gate.worker.profiling import profile
from sns_gate.worker.tuning import forget_tuning

#: Calls before anything is measured: the first compiles, the next ones tune and fill caches.
WARM_UP_CALLS = 3


class Workbench:
    """One side's benchmarks and, between ``place`` and ``release``, one case in place."""

    def __init__(self) -> None:
        self._hello = Hello("cpu", (), (), keep_editable=True)
        self._timer: Timer | None = None
        self._cases: dict[str, discovery.Case] = {}
        self._calls: list[Callable[[], object]] = []
        self._input_bytes = 0
        self._reached: dict[int, str] = {}
        self._made: list[object] = []
        self._as_reference = False
        self._tuned: set[str] = set()
        self._placed = ""

    def open(self, hello: Hello) -> Ready:
        """Settle what may be imported from where, then open the device."""
        self._hello = hello
        removed = isolation.disarm(hello)
        if hello.cpus:
            os.sched_setaffinity(0, hello.cpus)
        self._timer = open_timer(hello.device)
        return Ready(
            version=VERSION,
            pid=os.getpid(),
            removed_finders=removed,
            gpu_uuid=getattr(self._timer, "uuid", None),
            timer_step_ns=self._timer.step_ns,
        )

    def load(self, request: Load) -> Loaded:
        """Load every benchmark file, each on its own; a broken one does not hide the others."""
        failures: list[LoadFailure] = []
        fell_back: list[str] = []
        cases: list[discovery.Case] = []
        specs: list[CaseSpec] = []
        self._as_reference = request.as_reference
        for file, fallback in zip(request.files, request.fallbacks, strict=True):
            found = self._load_one(file, failures)
            if found is None and fallback is not None:
                found = self._load_one(fallback, failures)
                fell_back.extend([file] if found is not None else [])
            cases.extend(found or ())
            specs.extend(_spec(case, file) for case in found or ())
        if request.functions is not None:
            cases, specs = self._load_functions(*request.functions, failures)
        self._cases = {case.id: case for case in cases}
        # What is loaded by now stays, so that collecting before a placement costs little.
        gc.collect()
        gc.freeze()
        return Loaded(
            cases=tuple(specs),
            failures=tuple(failures),
            fingerprint=toolchain.capture(self._hello.device),
            fell_back=tuple(fell_back),
        )

    def rehearse(self, request: Rehearse) -> Placed:
        """Run the set-up once for the imports in it, and drop what it made."""
        timer, start = self._open_timer(), time.perf_counter_ns()
        seed_everything(request.seed)
        case = self._build(request.case)
        used = timer.allocated_bytes()
        del case
        timer.begin(request.seed)
        timer.end()
        return Placed((time.perf_counter_ns() - start) / 1e9, used)

    def place(self, request: Place) -> Placed:
        """Set the case up at fresh addresses and call it until it is warm."""
        timer = self._open_timer()
        if request.case not in self._tuned:
            self._tuned.add(request.case)
            forget_tuning(os.environ)
        recipe = request.recipe or Recipe("warm")
        start = time.perf_counter_ns()
        if self._calls:  # a request before this one failed half-way
            self._drop()
            timer.end()
        self._placed, self._reached = request.case, {}
        timer.begin(request.padding_seed)
        before = timer.allocated_bytes()
        for _ in range(recipe.copies):
            seed_everything(request.seed)
            self._calls.append(self._build(request.case))
        self._input_bytes = timer.allocated_bytes() - before
        for call in self._calls:
            for _ in range(WARM_UP_CALLS if request.warm_up else 0):
                _refuse_promises(call())
        timer.wait()
        if request.recipe is not None:
            timer.arrange(self._calls, request.recipe)
        # Its peak as well, such as of inputs that were made wider and then cut down.
        most_bytes = max(self._input_bytes, timer.peak_bytes() or 0)
        return Placed((time.perf_counter_ns() - start) / 1e9, most_bytes)

    def calibrate(self, request: Calibrate) -> Calibrated:
        """Measure the placed call well enough to choose a recipe."""
        timer, call = self._open_timer(), self._calls[0]
        changed, peak_bytes = self._watched_calls(call)
        measured = timer.calibrate(call, request.mode)
        return replace(
            measured,
            input_bytes=self._input_bytes,
            changed_inputs=changed,
            peak_bytes=peak_bytes,
        )

    def _watched_calls(self, call: Callable[[], object]) -> tuple[int, int | None]:
        """Two calls alike: how many arrays differ after them, and the second one's peak memory."""
        timer, seed = self._open_timer(), 0
        seed_everything(seed)
        call()
        timer.wait()
        before = snapshot(call)
        seed_everything(seed)
        timer.reset_peak()
        call()
        timer.wait()
        peak_bytes = timer.peak_bytes()
        return moved(before, snapshot(call)), peak_bytes

    def write_output(self, request: WriteOutput) -> OutputWritten:
        """Call the placed case once more and write what it returns, for another to compare."""
        if request.reach:
            self._reached = reachable(self._calls[0])
        wanted = {id_ for id_, digest in self._reached.items() if digest in request.renew}
        with renewed(self._calls[0], wanted) if wanted else nullcontext((0, 0)) as counts:
            return self._written(request, counts)

    def _written(self, request: WriteOutput, renewed: tuple[int, int]) -> OutputWritten:
        if not request.again or not self._made:
            self._made = []
            self._made = [self._called(request.seed)]
        if request.poison:
            overwrite(self._made.pop())
            self._made = [self._called(request.seed)]
        size_bytes = write_output(self._made[0], request)
        return OutputWritten(size_bytes, tuple(self._reached.values()), *renewed)

    def judge_outputs(self, request: JudgeOutputs) -> OutputsJudged:
        """Have the placed case's own comparator judge what both sides wrote."""
        comparator = self._cases[self._placed].benchmark.check
        if isinstance(comparator, bool):
            raise TypeError(f"'{self._placed}' has no comparator of its own in this revision")
        return OutputsJudged(judge(comparator, request.baseline, request.candidate))

    def profile_call(self, _: ProfileCall) -> Profiled:
        """Take the placed case's call apart."""
        return profile(self._calls[0], self._open_timer())

    def sample(self, _: TakeSample) -> Sampled:
        """Take one sample as arranged."""
        return self._open_timer().sample()

    def release(self, _: Release) -> Released:
        """Free the placed case."""
        timer = self._open_timer()
        self._drop()
        return Released(timer.end())

    def prove(self, _: Prove) -> Proven:
        """Say which files of the code under test are loaded."""
        return isolation.prove(self._hello)

    def recover(self) -> bool:
        """Free what a failed request left; False where the device is of no more use."""
        self._drop()
        if self._timer is None:
            return False
        try:
            self._timer.end()
        except RuntimeError:
            return False
        return True

    def _drop(self) -> None:
        """Let go of the placed case and of what it returned."""
        self._calls, self._made = [], []

    def _called(self, seed: int) -> object:
        """What one more call of the placed case returns."""
        seed_everything(seed)
        made = self._calls[0]()
        _refuse_promises(made)
        self._open_timer().wait()
        return made

    def _open_timer(self) -> Timer:
        if self._timer is None:
            raise RuntimeError("the device is not open yet")
        return self._timer

    def _build(self, case: str) -> Callable[[], object]:
        return self._cases[case].build(self._open_timer().device, as_reference=self._as_reference)

    def _load_one(self, file: str, failures: list[LoadFailure]) -> list[discovery.Case] | None:
        folder = os.path.dirname(file)  # noqa: PTH120 (a string goes on sys.path)
        if folder not in sys.path and not isolation.is_foreign(folder, self._hello):
            sys.path.append(folder)
        try:
            return discovery.load_file(file)
        except BaseException as error:  # noqa: BLE001 (a benchmark file may raise anything, SystemExit too)
            failures.append(_load_failure(file, error))
            return None

    def _load_functions(
        self, candidate: str, baseline: str, failures: list[LoadFailure]
    ) -> tuple[list[discovery.Case], list[CaseSpec]]:
        try:
            cases = discovery.load_functions(candidate, baseline)
        except BaseException as error:  # noqa: BLE001 (importing may raise anything, SystemExit too)
            failures.append(_load_failure(f"{candidate} and {baseline}", error))
            return [], []
        return cases, [_spec(case, case.benchmark.file) for case in cases]


def _load_failure(what: str, error: BaseException) -> LoadFailure:
    text = traceback_of(error)
    return LoadFailure(what, f"{type(error).__name__}: {error}", text[-20_000:])


def _spec(case: discovery.Case, source: str) -> CaseSpec:
    found = case.benchmark
    return CaseSpec(
        id=case.id,
        file=found.file,
        line=found.line,
        tolerance=found.tolerance,
        mode=found.mode,
        source=source,
        digest=case.digest,
        reference=case.reference,
        at_least=found.at_least if case.reference else None,
        check=bool(found.check),
        rtol=found.rtol,
        atol=found.atol,
        own_check=case.comparator_digest,
        poison=found.poison,
        memory_tolerance=found.memory_tolerance,
    )


def _refuse_promises(made: object) -> None:
    """A coroutine or a generator is a promise of work: timing the call would time none of it."""
    if inspect.isawaitable(made) or inspect.isgenerator(made) or inspect.isasyncgen(made):
        if inspect.iscoroutine(made):
            made.close()
        raise TypeError(
            f"the benchmark's callable returned a {type(made).__name__}, so no work was done in "
            f"it; run it to its end inside the callable, for example with asyncio.run"
        )
