"""`moot trust`: a project's settings are announced, and used when the user says so."""

from pathlib import Path

from tests.cli.ran import Moot

FILE = 'model = "rehearsal"\non_wait = "touch pwned"\n[addresses."http://gpu.example/v1"]\nkey_from = "GPU_KEY"\n'


def test_a_file_that_is_not_trusted_is_announced_by_every_command_that_reads_settings(moot: Moot) -> None:
    Path("moothall.toml").write_text(FILE)
    ran = moot("ls")
    told = f"not used: {Path.cwd() / 'moothall.toml'}: it is not trusted; read it, then run `moot trust`\n"
    assert (ran.code, ran.err.endswith(told)) == (0, True)
    assert moot("ls", "--json").json == []


def test_trusting_shows_what_counts_from_now_on(moot: Moot) -> None:
    Path("moothall.toml").write_text(FILE)
    ran = moot("trust")
    assert ran.out.splitlines() == [
        f"{Path.cwd() / 'moothall.toml'} is trusted as it is now:",
        "  model = rehearsal",
        "  on_wait = touch pwned",
        "  address http://gpu.example/v1 gets the key in GPU_KEY",
    ]
    assert "not used" not in moot("ls").err
    doctor = moot("doctor").out
    assert "moothall.toml is trusted" in doctor
    assert "rehearsal (moothall.toml)" in doctor


def test_an_empty_file_is_said_to_set_nothing(moot: Moot) -> None:
    Path("moothall.toml").write_text("")
    assert moot("trust").out == f"{Path.cwd() / 'moothall.toml'} is trusted as it is now; it sets nothing\n"


def test_a_command_of_a_project_is_run_only_when_it_is_trusted(moot: Moot) -> None:
    Path("asks.py").write_text(
        "from moothall import Answered, Final, Machine, On, State, question\n"
        "ASKS = Machine('asks', states=[State('asking', enter=question('Go?')), Final('over')],"
        " moves=[On('asking', Answered, to='over')])\n"
    )
    Path("moothall.toml").write_text(FILE)
    assert moot("run", "asks.py").code == 5
    assert not Path("pwned").exists()
    moot("trust")
    assert moot("run", "asks.py").code == 5
    assert Path("pwned").exists()


def test_doctor_warns_of_a_file_that_changed(moot: Moot) -> None:
    Path("moothall.toml").write_text(FILE)
    moot("trust")
    Path("moothall.toml").write_text(FILE + "#")
    [found] = [one for one in moot("doctor", "--json").json["checks"] if one["name"] == "project"]
    assert found["level"] == "warning"
    assert "it has changed since it was trusted" in found["says"]


def test_what_is_trusted_is_listed_and_forgotten(moot: Moot) -> None:
    Path("moothall.toml").write_text(FILE)
    trusted = moot("trust", "--json").json["trusted"]
    assert moot("trust", "--list", "--json").json == [trusted]
    assert moot("trust", "--list").out == f"{trusted['file']}\n"
    assert moot("trust", "--forget").out == f"{trusted['file']} is trusted no longer\n"
    assert moot("trust", "--forget").code == 1
    assert moot("trust", "--list").out == ""


def test_without_a_file_there_is_nothing_to_trust(moot: Moot) -> None:
    ran = moot("trust")
    assert (ran.code, ran.err) == (
        4,
        "moot trust: there is no moothall.toml here, nor above it in the repository; name one\n",
    )


def test_settings_that_cannot_be_read_are_a_sentence_for_every_command(moot: Moot) -> None:
    Path("home").mkdir()
    Path("home/settings.toml").write_text("model = [")
    ran = moot("ls")
    assert (ran.code, "settings.toml: Invalid value" in ran.err, ran.err.count("\n")) == (4, True, 1)
