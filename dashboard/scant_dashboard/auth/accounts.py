"""User accounts: names and hashed passwords in a file, for `scant user` and `scant serve --auth`.

The file is a JSON object of names and hashes, readable by its owner only. A hash is scrypt's, of
the standard library, in the PHC string format: "$scrypt$ln=15,r=8,p=3$<salt>$<digest>".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import tempfile
import threading
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from scant.errors import BadInput

# One of the equally strong settings of OWASP's Password Storage Cheat Sheet: 32 MiB and some 0.2 s
# per password. The first one (N = 2^17, p = 1) takes 128 MiB, too much for a server of 100 MB that
# checks several passwords at once.
LOG2_N, BLOCK, PARALLEL = 15, 8, 3
SALT_BYTES, DIGEST_BYTES = 16, 32
MEMORY_LIMIT = 2**28  # maximum bytes required by a hash in the file

SHORTEST, LONGEST = 8, 1024  # characters of a new password
FILE_NAME = "users.json"  # in the data directory, unless another file is given

_NAME = re.compile(r"[\w.@+-](?:[\w .@+-]{0,62}[\w.@+-])?")
_HASH = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([\w+/]+)\$([\w+/]+)", re.A)

log = logging.getLogger(__name__)


def default_file() -> Path:
    """Return the default user file: `users.json` in the data directory."""
    from scant.data_dir import data_dir

    return data_dir() / FILE_NAME


def hash_password(password: str) -> str:
    """Return a salted hash of a password for the user file; takes some 0.2 s."""
    salt = secrets.token_bytes(SALT_BYTES)
    return _encoded(salt, _scrypt(password, salt, LOG2_N, BLOCK, PARALLEL, DIGEST_BYTES))


def verify_password(password: str, encoded: str) -> bool:
    """Return whether a hash matches a password; the comparison takes constant time.

    Raises:
        ValueError: `encoded` is not a hash of `hash_password`.
    """
    log2_n, block, parallel, salt, digest = _decode(encoded)
    computed = _scrypt(password, salt, log2_n, block, parallel, len(digest))
    return hmac.compare_digest(computed, digest)


def checked_name(name: str) -> str:
    """Return a user's name in its normal form.

    Raises:
        BadInput: It is empty, too long, or has invalid characters.
    """
    name = unicodedata.normalize("NFKC", name)
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:80]!r} cannot be a user's name; give 1 to 64 letters, digits and . _ - @ +, "
            "with spaces only in between."
        )
    return name


def checked_password(password: str) -> str:
    """Return a valid new password.

    Raises:
        BadInput: It is too short or too long, or forms cannot send it.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise BadInput(
            f"The password has {len(password)} characters; give {SHORTEST} to {LONGEST}."
        )
    if any(unicodedata.category(character) == "Cc" for character in password):
        raise BadInput("The password has control characters, which no login form can send.")
    return password


def read_users(file: Path) -> dict[str, str]:
    """Return names and hashes of a user file.

    Raises:
        BadInput: The file is missing, readable by others, or invalid.
    """
    entries = _entries(file)
    for name, encoded in entries.items():
        try:
            _decode(encoded)
        except ValueError:
            raise BadInput(
                f"The user file {file} holds a plain password, or no hash of one, for {name!r}; "
                f"hash what it holds by `scant user convert --file {file}`."
            ) from None
    if os.name == "posix" and (mode := file.stat().st_mode & 0o777) & 0o077:
        raise BadInput(
            f"The user file {file} has mode {mode:04o}, so that others of this machine may read "
            f"it; run `chmod 600 {file}`."
        )
    return entries


def write_users(file: Path, users: Mapping[str, str]) -> None:
    """Write a user file atomically, with mode 0600.

    Raises:
        BadInput: It cannot be written.
    """
    file = file.resolve()  # preserve symbolic links
    half = ""
    try:
        if not file.parent.is_dir():
            file.parent.mkdir(parents=True, mode=0o700)
        handle, half = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(dict(sorted(users.items())), out, indent=2, ensure_ascii=False)
            out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        if os.name == "posix" and file.exists():  # keep the owner when root adds users
            there = file.stat()
            if there.st_uid != os.getuid():
                os.chown(half, there.st_uid, there.st_gid)
        os.replace(half, file)
    except OSError as error:
        with suppress(OSError):
            os.unlink(half)
        raise BadInput(
            f"The user file {file} cannot be written ({error.strerror}); name a place where you "
            "may write with --file."
        ) from error


def convert(file: Path) -> list[str]:
    """Hash the plain passwords of a file in place; return the names of their users.

    Raises:
        BadInput: The file is missing or invalid.
    """
    entries = _entries(file)
    users, plain = {}, []
    for name, value in entries.items():
        if not _HASH.fullmatch(value):
            plain.append(name)
            value = hash_password(value)
        users[checked_name(name)] = value
    write_users(file, users)
    return plain


class Accounts:
    """The user file of a running server, reread whenever it changes. Thread-safe.

    If a changed file is invalid (incomplete, or readable by others), this is logged, and the users
    of the last valid version remain.
    """

    def __init__(self, file: Path) -> None:
        """Read the file.

        Raises:
            BadInput: It is invalid or empty.
        """
        self.file = file
        self._lock = threading.Lock()
        self._state = _file_state(file)
        self._users = read_users(file)
        if not self._users:
            raise BadInput(
                f"The user file {file} holds no users; add one by `scant user add NAME --file "
                f"{file}`."
            )

    def users(self) -> dict[str, str]:
        """Return the current names and hashes."""
        with self._lock:
            state = _file_state(self.file)
            if state != self._state:
                self._state = state
                try:
                    self._users = read_users(self.file)
                except (BadInput, OSError) as error:
                    log.error("the user file cannot be used, its last state holds: %s", error)
            return self._users

    def authenticate(self, name: str, password: str) -> str | None:
        """Return the user's credential (see `credential`) if the password is right.

        This takes some 0.2 s, with an unknown name too.
        """
        encoded = self.users().get(unicodedata.normalize("NFKC", name))
        right = verify_password(password, encoded or _random_hash())
        return _fingerprint(encoded) if encoded is not None and right else None

    def credential(self, name: str) -> str | None:
        """Return a value that changes with the password but does not reveal it; None if unknown."""
        encoded = self.users().get(name)
        return None if encoded is None else _fingerprint(encoded)


def _entries(file: Path) -> dict[str, str]:
    if not file.is_file():
        raise BadInput(
            f"There is no user file {file}; make it by `scant user add NAME --file {file}`."
        )
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            f"The user file {file} cannot be read ({error.strerror}); run the command as its owner."
        ) from error
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise BadInput(
            f"The user file {file} is no JSON object of names and hashes; "
            "make a new one by `scant user add NAME` and name it with --file."
        )
    for name, value in entries.items():
        checked_name(name)
        if not (isinstance(value, str) and value):
            raise BadInput(
                f"{name!r} in the user file {file} has no password; take the line out and run "
                f"`scant user add {name}`."
            )
    return entries


def _file_state(file: Path) -> tuple[int, ...]:
    try:
        result = file.stat()
    except OSError:
        return ()
    return result.st_mtime_ns, result.st_size, result.st_ino, result.st_mode


def _random_hash() -> str:
    """Return a random hash, so that unknown names take as long as wrong passwords."""
    return _encoded(secrets.token_bytes(SALT_BYTES), secrets.token_bytes(DIGEST_BYTES))


def _encoded(salt: bytes, digest: bytes) -> str:
    parts = (base64.b64encode(data).decode().rstrip("=") for data in (salt, digest))
    return "$".join((f"$scrypt$ln={LOG2_N},r={BLOCK},p={PARALLEL}", *parts))


def _fingerprint(encoded: str) -> str:
    return hashlib.sha256(encoded.encode()).hexdigest()


def _scrypt(
    password: str, salt: bytes, log2_n: int, block: int, parallel: int, length: int
) -> bytes:
    normal = unicodedata.normalize("NFKC", password).encode()  # keyboards encode "ä" differently
    return hashlib.scrypt(
        normal, salt=salt, n=2**log2_n, r=block, p=parallel, dklen=length, maxmem=2 * MEMORY_LIMIT
    )


def _decode(encoded: str) -> tuple[int, int, int, bytes, bytes]:
    """Return (log2 N, r, p, salt, digest) of a hash; ValueError if invalid or too expensive."""
    match = _HASH.fullmatch(encoded)
    if match is None:
        raise ValueError("no scrypt hash")
    log2_n, block, parallel = (int(part) for part in match.groups()[:3])
    try:
        salt, digest = (base64.b64decode(p + "=" * (-len(p) % 4)) for p in match.groups()[3:])
    except binascii.Error as error:
        raise ValueError("no base64") from error
    memory = 128 * block * 2**log2_n
    if 0 in (log2_n, block, parallel) or parallel > 16 or memory > MEMORY_LIMIT:
        raise ValueError("parameters out of range")
    if len(salt) < 8 or len(digest) < 16:
        raise ValueError("salt or digest too short")
    return log2_n, block, parallel, salt, digest
