from http import HTTPStatus

from sealgate.core import statuses


def test_each_name_has_its_number() -> None:
    names = {name: number for name, number in vars(statuses).items() if name.isupper()}
    assert names == {name: HTTPStatus[name].value for name in names}
