"""The fingerprint: what identifies toolchain and device, and nothing volatile."""
