"""Help, completion and the list of criterion keys: what a newcomer reads before anything is run."""

import tomllib
from collections.abc import Iterator

import click
import pytest

from lapledger.cli.criterion_options import parse_setting
from lapledger.cli.main import COMMANDS, SECTIONS, lap
from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import PRESETS, Criterion, preset
from lapledger.replay.fields import FIELDS
from tests.support import lap as runner


def commands(group: click.Group = lap, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group below `lap` with its path."""
    context = click.Context(group, **group.context_settings)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = dict(commands())
GROUPS = [path for path, command in ALL.items() if isinstance(command, click.Group)]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_help_has_an_example_and_every_option_a_text(path: tuple[str, ...]) -> None:
    """The example calls the command itself; a shown option says what it does, or at least its default."""
    text = ALL[path].help or ""
    assert "Example:\n" in text
    assert f"lap {' '.join(path)}" in text.partition("Example:\n")[2]
    for parameter in ALL[path].params:
        assert not isinstance(parameter, click.Option) or parameter.hidden or parameter.help, parameter.name


def test_help_groups_every_command_once() -> None:
    """The sections of `lap --help` hold each command with its line."""
    shown = runner.well("--help").out
    assert sum(map(len, SECTIONS.values())) == len(COMMANDS)
    for title, section in SECTIONS.items():
        assert f"\n{title}:\n" in shown
        for name in section:
            assert f"\n  {name} " in shown


@pytest.mark.parametrize("path", [(), *GROUPS], ids=lambda path: " ".join(("lap", *path)))
def test_a_bare_group_prints_its_help(path: tuple[str, ...]) -> None:
    """The same text as --help, on standard output, with exit code 0."""
    bare = runner.lap(*path)
    assert (bare.code, bare.err) == (0, "")
    assert bare.out == runner.well(*path, "--help").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("verfy",), "no such command 'verfy'; did you mean 'verify'? See `lap --help`"),
        (("ledger", "ini"), "no such command 'ini'; did you mean 'init'? See `lap ledger --help`"),
        (("zzz",), "no such command 'zzz'; see `lap --help`"),
        (("verify", "--hed", "x"), "no such option '--hed'; did you mean '--head'? See `lap verify --help`"),
        (("replay", "--set", "statistc=median"), "no criterion key 'statistc'; did you mean 'statistic'?"),
        (("replay", "--set", "statistic"), "--set statistic: write KEY=VALUE"),
        (("replay", "--set", "buckets=1"), "--set: '1' is not allowed for criterion key 'buckets'; use a whole number"),
        (("replay", "--set", "clock=sundial"), "'sundial' is not allowed for criterion key 'clock'; use wall | cpu"),
        (("replay", "--clock", "cpu", "--set", "clock=cpu"), "criterion key 'clock' is set twice; set it once"),
        (("replay", "--timeout", "500"), "--timeout 500: a duration needs its unit"),
        (("replay", "--timeout", "1500us"), "--timeout 1500us: give one duration in whole ms"),
        (("replay", "--timeout", "1s,2s"), "--timeout 1s,2s: give one duration in whole ms"),
        (("demo", "--int", "x"), "no such option '--int'; did you mean '--into'?"),
        (("criteria", "top-3"), "no criterion preset 'top-3'; did you mean 'top-30'?"),
    ],
)
def test_a_mistyped_call_names_what_was_meant(args: tuple[str, ...], message: str) -> None:
    """One line on stderr with exit code 2."""
    done = runner.lap(*args)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("timeout_ms=1500", "timeout_ms", 1500),
        ("timeout-ms = 1500", "timeout_ms", 1500),
        ("timeout_ms=none", "timeout_ms", None),
        ("calibration=none", "calibration", "none"),
        ("buckets=20", "buckets", 20),
        ("limit_factor=1.50", "limit_factor", "1.5"),
        ("tau=12.5", "tau", "12.5"),
    ],
)
def test_a_setting_has_its_key_s_own_type(text: str, key: str, value: object) -> None:
    """Whole numbers are int, decimal numbers their shortest text, `none` takes an optional key out."""
    assert parse_setting(text) == (key, value)
    assert type(parse_setting(text)[1]) is type(value)


def test_a_integer_is_no_decimal_one() -> None:
    """1.0 is not read as 1."""
    with pytest.raises(UserError, match=r"'1[.]0' is not allowed"):
        parse_setting("buckets=1.0")


def test_criteria_lists_every_preset_and_key() -> None:
    """The JSON holds what the code knows; the tables name all of it."""
    listed = runner.well("criteria", "--json").json
    assert {row["name"]: row["hash"] for row in listed["presets"]} == {n: c.hash for n, c in PRESETS.items()}
    assert [row["key"] for row in listed["keys"]] == list(FIELDS)
    assert all(row["meaning"] and row["allowed"] for row in listed["keys"])
    shown = runner.well("criteria").out
    assert all(f"\n{name} " in shown for name in (*PRESETS, *FIELDS))


@pytest.mark.parametrize("name", PRESETS)
def test_criteria_shows_a_preset_as_the_toml_that_states_it(name: str) -> None:
    """What is printed, read again, is the same criterion."""
    shown = runner.well("criteria", name).out
    assert Criterion.from_toml(shown) == preset(name)
    assert f"# hash {preset(name).hash}\n" in shown
    assert runner.well("criteria", name, "--json").json["keys"] == tomllib.loads(shown)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_shell_s_script(shell: str) -> None:
    """The script calls `lap` with the variable that click answers to."""
    assert f"_LAP_COMPLETE={shell}_complete" in runner.well("completion", shell).out


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("lap ver", ["verify"]),
        ("lap replay --criterion top-5", ["top-50"]),
        ("lap replay --set timeout", ["timeouts=", "timeout_ms="]),
    ],
)
def test_completion_knows_commands_presets_and_keys(line: str, completions: list[str]) -> None:
    """As bash asks for them."""
    count = str(len(line.split()) - 1)
    done = runner.process(_LAP_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=count)
    assert [row.partition(",")[2] for row in done.out.splitlines()] == completions
