"""Workers in interpreters that are not ours: bare, torch alone, oldest, editable installs."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import BENCH, WORK, check, commit, new_repository

SITE = Path(sysconfig.get_paths()["purelib"])
OLDEST = "3.10"
_REQUIREMENT = re.compile(r"^[A-Za-z0-9._-]+")


def interpreter(folder: Path, *packages: str, python: str = sys.executable) -> Path:
    """A new virtual environment without pip that holds these distributions and what they need."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in _with_requirements(packages):
        for file in importlib.metadata.files(name) or ():
            top = file.parts[0]
            if not top.startswith("..") and not (site / top).exists():
                (site / top).symlink_to(SITE / top)
    return folder / "bin" / "python"


def _with_requirements(names: tuple[str, ...]) -> set[str]:
    wanted, queue = set(), list(names)
    while queue:
        name = queue.pop()
        try:
            requirements = importlib.metadata.requires(name) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        if name not in wanted:
            wanted.add(name)
            queue += [
                m[0] for r in requirements if "extra ==" not in r and (m := _REQUIREMENT.match(r))
            ]
    return wanted


def candidates() -> list[str]:
    """Where the oldest supported Python may be."""
    found = shutil.which(f"python{OLDEST}")
    managed = Path.home().glob(f".pyenv/versions/{OLDEST}.*/bin/python{OLDEST}")
    return [*([found] if found else []), *map(str, managed)]


def works(python: str) -> bool:
    """Whether an interpreter starts; a version manager's stand-in may not."""
    return subprocess.run([python, "-V"], check=False, capture_output=True).returncode == 0


def holds(*modules: str) -> str:
    """Lines of a benchmark file that insist on what its interpreter holds, and nothing more."""
    lines = ["", "    import importlib.util"]
    for name in ("torch", "numpy", "pydantic", "rich", "psutil"):
        found = "is not" if name in modules else "is"
        lines.append(f"    assert importlib.util.find_spec({name!r}) {found} None, {name!r}")
    return "\n".join(lines) + "\n"


def test_workers_run_in_a_bare_interpreter(repository: Path, tmp_path: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH + holds()})
    ran = check(repository, "--python", str(interpreter(tmp_path / "bare")))
    assert ran.verdicts == {"square[n=2000]": "unchanged"}, ran.out
    assert ran.result is not None
    assert ran.result.candidate.fingerprint is not None
    assert ran.result.candidate.fingerprint.torch_version is None


def test_workers_run_in_an_interpreter_that_holds_torch_alone(
    repository: Path, tmp_path: Path
) -> None:
    bench = (
        BENCH
        + holds("torch")
        + """
    @benchmark
    def add(device):
        import torch
        x = torch.ones(20000, device=device)
        return lambda: (work(2000), x + x)
    """
    )
    commit(repository, {"benchmarks/bench_work.py": "    import torch\n" + bench})
    ran = check(repository, "--python", str(interpreter(tmp_path / "torch", "torch")))
    assert ran.verdicts == {"square[n=2000]": "unchanged", "add": "unchanged"}, ran.out + ran.err
    assert ran.result is not None
    assert ran.result.candidate.fingerprint is not None
    assert ran.result.candidate.fingerprint.torch_version == importlib.metadata.version("torch")


def test_workers_run_on_the_oldest_supported_python(repository: Path, tmp_path: Path) -> None:
    oldest = next(filter(works, candidates()), None)
    if oldest is None:
        pytest.skip(f"no Python {OLDEST} on this machine; 'make lint' checks the worker for it")
    commit(repository, {"benchmarks/bench_work.py": BENCH + holds()})
    ran = check(repository, "--python", str(interpreter(tmp_path / "old", python=oldest)))
    assert ran.verdicts == {"square[n=2000]": "unchanged"}, ran.out + ran.err
    assert ran.result is not None
    assert ran.result.candidate.fingerprint is not None
    assert (ran.result.candidate.fingerprint.python_version or "").startswith(OLDEST + ".")


def test_an_interpreter_that_is_none_is_named(repository: Path) -> None:
    ran = check(repository, "--baseline", "HEAD", "--python", "/no/such/python")
    assert ran.code == 2
    assert "/no/such/python" in ran.err
    assert "Traceback" not in ran.err


# ------------------------------------------------------------------- editable installs

SETUPTOOLS = """
    [build-system]
    requires = ["setuptools"]
    build-backend = "setuptools.build_meta"

    [project]
    name = "pkg"
    version = "1"

    [tool.setuptools]
    packages = ["pkg"]
    package-dir = {pkg = "lib/pkg"}
"""
SCIKIT_BUILD = """
    [build-system]
    requires = ["scikit-build-core"]
    build-backend = "scikit_build_core.build"

    [project]
    name = "pkg"
    version = "1"

    [tool.scikit-build]
    wheel.packages = ["lib/pkg"]
"""
CMAKE = """
    cmake_minimum_required(VERSION 3.15)
    project(pkg LANGUAGES C)
    add_library(work SHARED work.c)
    install(TARGETS work DESTINATION pkg)
"""
#: Time that passes whatever else the machine does, like ``WORK``.
C_WORK = """
    #include <unistd.h>
    long work(long n) {
        usleep(n / 2);
        return n;
    }
"""
C_LOADER = """
    import ctypes, pathlib
    _file = next(f for folder in __path__ for f in pathlib.Path(folder).glob("libwork.*"))
    work = ctypes.CDLL(str(_file)).work
"""


def developer_environment(folder: Path) -> Path:
    """A virtual environment that sees this one's build tools and has its own installs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "zz_tools.pth").write_text(f"{SITE}\n")
    return folder / "bin" / "python"


def c_compiler(folder: Path) -> str:
    """gcc where there is one, else a script that calls the compiler of the ziglang wheel."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found:
        return found
    script = folder / "zig-cc"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc "$@"\n')
    script.chmod(0o755)
    return str(script)


def pip(python: Path, *arguments: str, **environment: str) -> None:
    tools = f"{SITE.parent.parent.parent}/bin"
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         *arguments],
        capture_output=True, text=True, check=False,
        env={"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(Path.home()), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_setuptools_editable_install_serves_neither_side_the_others_code(tmp_path: Path) -> None:
    repository = new_repository(
        tmp_path / "repo",
        {"lib/pkg/__init__.py": WORK, "benchmarks/bench_work.py": BENCH,
         "pyproject.toml": SETUPTOOLS, ".gitignore": "*.egg-info/\n"},
    )  # fmt: skip
    python = developer_environment(tmp_path / "env")
    pip(python, "-e", str(repository))
    commit(repository, {"lib/pkg/__init__.py": WORK.replace("range(n)", "range(6 * n)")})
    ran = check(repository, "--python", str(python), "--pythonpath", "lib")
    assert ran.verdicts == {"square[n=2000]": "slower"}, ran.out + ran.err
    assert ran.result is not None
    assert ran.result.baseline.loaded == ran.result.candidate.loaded == ("lib/pkg/__init__.py",)
    assert "import-removed" in [reason.code for reason in ran.result.disclosures]
    # Where nothing leads the baseline to its own code, the finder would lead it to the other's.
    lost = check(repository, "--python", str(python))
    assert lost.code == 2
    assert f"loaded {repository}/lib/pkg/__init__.py, which is the other side's code" in lost.err


def test_a_compiled_extension_is_built_for_each_side_beside_a_scikit_build_editable_install(
    tmp_path: Path,
) -> None:
    repository = new_repository(
        tmp_path / "repo",
        {"lib/pkg/__init__.py": C_LOADER, "work.c": C_WORK, "CMakeLists.txt": CMAKE,
         "pyproject.toml": SCIKIT_BUILD,
         "benchmarks/bench_work.py": BENCH},
    )  # fmt: skip
    python = developer_environment(tmp_path / "env")
    compiler = c_compiler(tmp_path)
    pip(python, "-e", str(repository), CC=compiler)
    commit(repository, {"work.c": C_WORK.replace("n / 2", "6 * n / 2")})
    command = "{python} -m pip install --no-deps --no-build-isolation --target {prefix} {worktree}"
    tools = f"{SITE.parent.parent.parent}/bin"
    ran = check(
        repository, "--python", str(python), "--build", command,
        CC=compiler, PATH=f"{tools}:/usr/bin:/bin",
    )  # fmt: skip
    assert ran.verdicts == {"square[n=2000]": "slower"}, ran.out + ran.err
    assert ran.result is not None
    for info in (ran.result.baseline, ran.result.candidate):
        side = "baseline" if info is ran.result.baseline else "candidate"
        assert any(re.search(rf"/{side}-prefix/pkg/libwork\.\w+$", f) for f in info.loaded), info
