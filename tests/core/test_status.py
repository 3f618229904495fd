import json
from dataclasses import asdict

from sealgate.core.status import ClockStatus, KeyStatus, Status


def test_the_status_can_be_written_as_json() -> None:
    """The status page sends it as it is: plain values all the way down, unknown ones as null."""
    status = Status(
        version="1.0",
        base_url="https://api.example.com",
        uptime_s=1.5,
        not_ready=("clock not synced: no sample yet",),
        is_draining=False,
        inflight=1,
        connections=2,
        clock=ClockStatus(
            offset_s=None, error_s=None, age_s=None, steps=0, refusals=0, trouble="no sample yet"
        ),
        keys=(KeyStatus("main", 0.25, {"cancel": 0, "order": 1, "read": 0}),),
    )
    read = json.loads(json.dumps(asdict(status), allow_nan=False))
    assert read["not_ready"] == ["clock not synced: no sample yet"]
    assert read["clock"]["offset_s"] is None
    assert read["keys"] == [
        {"alias": "main", "pause_s": 0.25, "waiting": {"cancel": 0, "order": 1, "read": 0}}
    ]
