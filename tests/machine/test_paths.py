"""Folders that root lends to a group, as Kubernetes mounts a volume for fsGroup."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from sealgate.machine.paths import folder_fault

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")

ACCOUNT, ALIEN = 54_321, 54_322  # that no account database has


def lent(folder: Path, mode: int, group: int) -> Path:
    os.chown(folder, 0, group)
    folder.chmod(mode)
    return folder


@pytest.fixture
def _a_container_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user and a group without names, as in a pod."""
    monkeypatch.setattr(os, "geteuid", lambda: ACCOUNT)
    monkeypatch.setattr(os, "getegid", lambda: ACCOUNT)
    monkeypatch.setattr(os, "getgroups", lambda: [ACCOUNT])


@pytest.mark.usefixtures("_a_container_user")
@pytest.mark.parametrize("mode", [0o2770, 0o2775, 0o3770])
def test_a_volume_of_our_group_will_do_even_for_the_journal(tmp_path: Path, mode: int) -> None:
    assert folder_fault(lent(tmp_path, mode, ACCOUNT), may_be_sticky=False) is None


@pytest.mark.usefixtures("_a_container_user")
@pytest.mark.parametrize(
    ("mode", "group"),
    [(0o770, ACCOUNT), (0o2777, ACCOUNT), (0o2770, ALIEN)],
    ids=["without the setgid bit", "for everybody", "another group"],
)
def test_any_other_folder_of_a_group_is_refused(tmp_path: Path, mode: int, group: int) -> None:
    cause, fix = folder_fault(lent(tmp_path, mode, group)) or ("", "")
    assert cause == f"others may write to its folder {tmp_path} (mode {mode:04o})"
    assert fix == f"use a folder of this user, or chmod go-w {tmp_path} as root"


@pytest.mark.usefixtures("_a_container_user")
def test_a_folder_of_our_own_is_lent_by_nobody(tmp_path: Path) -> None:
    lent(tmp_path, 0o2770, ACCOUNT)
    os.chown(tmp_path, ACCOUNT, -1)
    tmp_path.chmod(0o2770)
    assert folder_fault(tmp_path) is not None


def _account(name: str, user: int, group: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", user, group, "", "/", "/bin/sh"))


@pytest.mark.usefixtures("_a_container_user")
def test_a_group_that_has_another_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lent(tmp_path, 0o2770, ACCOUNT)
    others = [_account("sealgate", ACCOUNT, ACCOUNT), _account("other", ALIEN, ACCOUNT)]
    monkeypatch.setattr(pwd, "getpwall", lambda: others)
    assert folder_fault(tmp_path) is not None
    monkeypatch.setattr(pwd, "getpwall", lambda: others[:1])
    assert folder_fault(tmp_path) is None


@pytest.mark.usefixtures("_a_container_user")
@pytest.mark.parametrize(
    ("name", "members", "is_fine"),
    [
        ("sealgate", [], True),
        ("sealgate", ["sealgate"], True),
        ("sealgate", ["sealgate", "other"], False),
        ("users", [], False),
    ],
)
def test_a_group_with_a_name_must_be_the_account_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, members: list[str], *, is_fine: bool
) -> None:
    """Members by primary group are in no list of a directory service, so the name must say it."""
    lent(tmp_path, 0o2770, ACCOUNT)
    monkeypatch.setattr(pwd, "getpwuid", lambda _user: _account("sealgate", ACCOUNT, ACCOUNT))
    monkeypatch.setattr(grp, "getgrgid", lambda _group: grp.struct_group((name, "x", ACCOUNT, members)))
    assert (folder_fault(tmp_path) is None) == is_fine
