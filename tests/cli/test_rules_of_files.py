"""Secrets, tokens and journals that others could have put there: the rule that is broken, and what mends it.

Each mend is done as it is printed.
"""

import os
import subprocess
from pathlib import Path

import pytest

from rig.plain import SECRET, Ended, run, running_exchange, running_gateway

STRANGER = 4711
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
CONFIG = """\
base_url = "{base_url}"
listen.tcp = "127.0.0.1:0"
admin.tcp = ""
admin.unix = "off"
[keys.main]
api_key = "ak-public-1"
secret = "{secret}"
"""


def configure(folder: Path, secret: str, more: str = "", base_url: str = "http://127.0.0.1:9") -> None:
    (folder / "sealgate.toml").write_text(CONFIG.format(base_url=base_url, secret=secret) + more)


def store(folder: Path, name: str = "secret") -> Path:
    folder.mkdir(exist_ok=True, mode=0o700)
    file = folder / name
    file.touch(0o600)
    file.write_text(SECRET)
    return file


def refused(folder: Path, *arguments: str, **environ: str) -> str:
    ended = run(*(arguments or ("serve",)), folder=folder, environ=environ)
    assert ended.code in (1, 2), ended
    assert SECRET not in ended.said
    assert "Traceback" not in ended.said
    return ended.said


def mend(told: str, folder: Path) -> None:
    """Do what a line advises after its last semicolon."""
    command = told.strip().splitlines()[-1].rpartition("; ")[2].partition(" if you trust")[0]
    subprocess.run(["sh", "-c", command], check=True, cwd=folder)


def looked(folder: Path) -> Ended:
    return run("check", "--offline", folder=folder)


def test_a_secret_in_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    secret = store(tmp_path / "for all")
    configure(tmp_path, f"file:{secret}")
    secret.parent.chmod(0o757)
    told = refused(tmp_path)
    assert f"file:{secret}: others may write to its folder '{secret.parent}' (mode 0757)" in told
    mend(told, tmp_path)
    assert "the secret is readable" in looked(tmp_path).out


def test_a_secret_in_a_sticky_folder_is_taken_as_sockets_are(tmp_path: Path) -> None:
    secret = store(tmp_path / "sticky")
    secret.parent.chmod(0o1777)
    configure(tmp_path, f"file:{secret}")
    assert "the secret is readable" in looked(tmp_path).out


def test_a_link_in_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """Who may replace the link chooses the secret, wherever the file itself is."""
    secret = store(tmp_path / "ours")
    (tmp_path / "open").mkdir()
    link = tmp_path / "open" / "link"
    link.symlink_to(secret)
    link.parent.chmod(0o777)
    configure(tmp_path, f"file:{link}")
    told = refused(tmp_path)
    assert f"file:{link}: others may write to its folder {link.parent} (mode 0777); " in told
    mend(told, tmp_path)
    assert "the secret is readable" in looked(tmp_path).out


@only_root
def test_a_secret_in_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    secret = store(tmp_path / "theirs")
    os.chown(secret.parent, STRANGER, -1)
    configure(tmp_path, f"file:{secret}")
    rule = (
        f"its folder {secret.parent} belongs to user {STRANGER}, neither this one nor root; use a folder of"
    )
    assert rule in refused(tmp_path)


def test_a_command_that_fails_has_nothing_repeated_of_what_it_wrote(tmp_path: Path) -> None:
    """`sh -x` repeats on stderr what it runs, and a password manager its question or its answer."""
    script = tmp_path / "ask.sh"
    for line in (f"echo {SECRET}", f"echo {SECRET} >&2", f"set -x; : {SECRET}"):
        script.write_text(f"{line}\nexit 3\n")
        configure(tmp_path, f"cmd:sh {script}")
        for command in (("serve",), ("check", "--offline")):
            told = refused(tmp_path, *command)
            assert "cmd:sh: ended with exit code 3" in told
            assert "run it by hand as this user" in told


def test_a_journal_that_others_may_write_to_names_the_rule(tmp_path: Path) -> None:
    with running_exchange() as base_url:
        more = f'[journal]\nfile = "{tmp_path}/j.db"\n'
        configure(tmp_path, "env:EXCHANGE_SECRET", more, base_url)
        with running_gateway(folder=tmp_path):
            pass
        for part in ("j.db", "j.db-wal", "j.db-lock"):
            (tmp_path / part).touch(0o600)
            (tmp_path / part).chmod(0o666)
            told = refused(tmp_path)
            assert f"journal.file {tmp_path}/j.db: others may write to {part} (mode 0666); chmod 600 " in told
            mend(told, tmp_path)
        with running_gateway(folder=tmp_path):
            pass
