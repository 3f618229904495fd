import pytest

from rig.image import Image, replayed


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Return the image, made once: it takes as long as pip takes."""
    return replayed(tmp_path_factory.mktemp("image"))
