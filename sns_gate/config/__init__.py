"""Settings from defaults, file, environment and command line; it reads no repository."""

from sns_gate.config.settings import (
    DEFAULT_STATE_DIR,
    MOST_PROCESSES,
    POLICY,
    Option,
    Settings,
    kebab,
    setting_options,
)
from sns_gate.config.sources import (
    ENVIRONMENT_PREFIX,
    FILE,
    FILES,
    TABLE,
    Layers,
    Source,
    parse_files,
    read_environment,
    read_file,
    resolve,
)

__all__ = [
    "DEFAULT_STATE_DIR",
    "ENVIRONMENT_PREFIX",
    "FILE",
    "FILES",
    "MOST_PROCESSES",
    "POLICY",
    "TABLE",
    "Layers",
    "Option",
    "Settings",
    "Source",
    "kebab",
    "parse_files",
    "read_environment",
    "read_file",
    "resolve",
    "setting_options",
]
