"""Settings, parsed once at the edge: flags win over `LAP_*` variables, these over `lap.toml`, it over defaults.

Everything further in receives plain frozen values.
"""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from lapledger.ledger.errors import UserError
from lapledger.ledger.store.location import Location
from lapledger.ledger.streams.kafka.settings import KafkaSettings

FILE = "lap.toml"
MAX_FILE_BYTES = 64 << 10


class Settings(BaseSettings):
    """Every setting of lapledger with its default."""

    model_config = SettingsConfigDict(env_prefix="LAP_", toml_file=FILE, extra="forbid", frozen=True)

    ledger: Annotated[Path, Field(description="folder of the ledger")] = Path(".lap")
    sql: Annotated[str, Field(description="PostgreSQL address, postgresql://...; empty is a file in the folder")] = ""
    store: Annotated[
        str, Field(description="object store of segments and blobs, s3://BUCKET/PREFIX; empty: the folder")
    ] = ""
    kafka: Annotated[str, Field(description="Kafka brokers, HOST:PORT,...; empty is a file in the folder")] = ""
    kafka_prefix: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$", description="topics are PREFIX.facts, ...")
    ] = "lap"
    kafka_replication: Annotated[int, Field(ge=0, le=9, description="copies of a new topic; 0: the broker decides")] = 0
    kafka_security: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], Field(description="security protocol of the brokers")
    ] = "PLAINTEXT"
    kafka_mechanism: Annotated[str, Field(description="SASL mechanism, for instance SCRAM-SHA-512")] = ""
    kafka_username: Annotated[str, Field(description="SASL user")] = ""
    kafka_password: Annotated[SecretStr, Field(description="SASL password")] = SecretStr("")
    kafka_ca: Annotated[str, Field(description="file with the certificate authority of the brokers")] = ""
    kafka_cert: Annotated[str, Field(description="file with the client's certificate")] = ""
    kafka_key: Annotated[str, Field(description="file with the client's key")] = ""
    kafka_timeout: Annotated[float, Field(ge=1, description="how long a broker may take to answer, seconds")] = 30
    reserve_mb: Annotated[int, Field(ge=0, description="writers stop when a disk has less left, MiB")] = 256
    spool_mb: Annotated[int, Field(ge=1, description="most that a producer keeps while its broker is away, MiB")] = 1024
    spool_wait: Annotated[float, Field(ge=1, description="how long a producer with a full spool waits, seconds")] = 300
    slots: Annotated[
        int, Field(ge=1, le=256, description="programs run side by side; half the cores leave room for timing")
    ] = max(1, (os.cpu_count() or 2) // 2)
    limit: Annotated[
        Literal["own"] | Annotated[float, Field(ge=0.001, le=3600)],
        Field(description="hard time limit of one run, seconds; own: as each problem states it, else 10"),
    ] = "own"
    memory_mb: Annotated[
        int | None, Field(ge=64, description="memory of one process, MiB; unset: as each problem states it, else 1024")
    ] = None
    output_mb: Annotated[
        int | None, Field(ge=1, description="largest output of one run, MiB; unset: as each problem states it, else 64")
    ] = None
    processes: Annotated[int, Field(ge=1, description="processes and threads of one run")] = 16
    repetitions: Annotated[int, Field(ge=1, le=1000, description="timed runs of each program on each test")] = 1
    warmups: Annotated[int, Field(ge=0, le=100, description="warm-up runs, recorded but not scored")] = 0
    seed: Annotated[int, Field(ge=0, lt=2**63, description="seed of a campaign's shuffled order")] = 0
    service: Annotated[str, Field(description="worker class; only timings of one class are compared")] = "local"
    isolation: Annotated[
        Literal["auto", "bubblewrap", "plain"],
        Field(description="auto takes bubblewrap and falls back to plain processes with a warning"),
    ] = "auto"

    @property
    def location(self) -> Location:
        """Where the parts of the ledger lie."""
        return Location(
            self.ledger,
            self.sql,
            self.store,
            self._kafka_settings,
            reserve_bytes=self.reserve_mb << 20,
            spool_bytes=self.spool_mb << 20,
            spool_seconds=self.spool_wait,
        )

    @property
    def _kafka_settings(self) -> KafkaSettings | None:
        if not self.kafka:
            return None
        return KafkaSettings(
            servers=self.kafka,
            prefix=self.kafka_prefix,
            security_protocol=self.kafka_security,
            sasl_mechanism=self.kafka_mechanism,
            sasl_username=self.kafka_username,
            sasl_password=self.kafka_password.get_secret_value(),
            ssl_cafile=self.kafka_ca,
            ssl_certfile=self.kafka_cert,
            ssl_keyfile=self.kafka_key,
            timeout_seconds=self.kafka_timeout,
            replication=self.kafka_replication,
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def read_settings(**flags: Any) -> Settings:
    """The settings in force; flags that are None count as not given. UserError names a wrong value and its source."""
    given = {name: value for name, value in flags.items() if value is not None}
    if Path(FILE).is_file() and Path(FILE).stat().st_size > MAX_FILE_BYTES:
        raise UserError(f"{FILE}: more than {MAX_FILE_BYTES >> 10} KiB; write one `name = value` a line")
    try:
        return Settings(**given)
    except RecursionError:
        raise UserError(f"{FILE}: TOML nested too deep; write one `name = value` a line") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{FILE}: not valid TOML ({error}); write one `name = value` a line") from None
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        messages = [item["msg"] for item in error.errors() if item["loc"][:1] == first["loc"][:1]]  # one a type
        raise UserError(_wrong(name, ", or ".join(messages), source_of(name, given))) from None


def _wrong(name: str, message: str, source: str) -> str:
    if name.lower() not in Settings.model_fields:
        return f"setting {name!r} from {source} is not known; `lap config show` lists all settings"
    return f"setting {name!r} from {source}: {message}; `lap config show` lists all settings"


def source_of(name: str, flags: dict[str, Any] | None = None) -> str:
    """Where a setting's value comes from, in words."""
    if flags and name in flags:
        return f"flag --{name.replace('_', '-')}"
    variable = next((key for key in os.environ if key.upper() == f"LAP_{name.upper()}"), None)
    if variable:
        return f"environment {variable}"
    path = Path(FILE)
    if path.is_file() and name in tomllib.loads(path.read_text()):
        return f"file {path.resolve()}"
    return "default"
