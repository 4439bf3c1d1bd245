# SPDX-License-Identifier: GPL-2.0-or-later
"""Reductionist's API against a real target: requests of its documentation, and those of PyActiveStorage.

numpy says what is right; both ways to compute in the target agree with it.
"""

from __future__ import annotations

import base64
import gzip
import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyosd
from pyosd.fronts.reductionist import reduce
from pyosd.fronts.reductionist.checked import TYPES, ArrayRefusal, checked
from pyosd.fronts.reductionist.server import WRONG_MOST
from pyosd.offload.home import client_environment
from pyosd.types import PartitionId
from tests import warm
from tests.machine import unavailable
from tests.package_sets import NUMPY, SETS, from_registry
from tests.serving import Serving, sandboxes_missing, shared

WAIT_S = 60.0
OSD = "import sys; from pyosd.cli import main; main(prog_name='osd')"
EXAMPLE = {"interface_type": "https", "url": "http://x/0x10000/a", "dtype": "int32"}

# ---- the reduction itself ------------------------------------------------------------------------


def asked(operation: str, **fields: Any) -> dict[str, Any]:
    return checked(operation, json.dumps(EXAMPLE | fields).encode()).args


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, Any], Any]:
    """Operation, fields of a request, and the array as it is stored."""
    kind = draw(st.sampled_from([*TYPES]))
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    order = draw(st.sampled_from("CF"))
    size = prod(shape)
    if kind.startswith("float"):
        some = st.sampled_from([0.0, 1.5, -2.25, 1e20, float("inf")]) | st.floats(-9, 9, width=32)
        if draw(st.booleans()):
            some |= st.just(float("nan"))
    else:
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        some = st.integers(0, 5) | st.sampled_from([int(least), int(most)])
    data = np.array(draw(st.lists(some, min_size=size, max_size=size)), kind)
    fields: dict[str, Any] = {"dtype": kind, "shape": shape, "order": order}
    fields["byte_order"] = draw(st.sampled_from(["little", "big", None]))
    if draw(st.booleans()):
        ends = st.integers(-6, 6)
        stride = st.integers(-3, 3).filter(bool)
        fields["selection"] = [draw(st.tuples(ends, ends, stride)) for _ in shape]
    if draw(st.booleans()):
        fields["axis"] = sorted(draw(st.sets(st.integers(0, len(shape) - 1))))
    fields["missing"] = draw(
        st.sampled_from(
            [
                None,
                {"missing_value": 1},
                {"missing_values": [0, 2, 5]},
                {"valid_min": 1},
                {"valid_max": 3},
                {"valid_range": [1, 3]},
            ]
        )
    )
    return draw(st.sampled_from(["count", "max", "min", "select", "sum"])), fields, data


def valid_elements(part: Any, missing: dict[str, Any] | None) -> Any:
    if missing is None:
        return np.ones(part.shape, bool)
    [(name, value)] = missing.items()
    if name.startswith("missing"):
        return ~np.isin(part, value)
    least, most = value if name == "valid_range" else (value, value)
    low = part >= least if name != "valid_max" else True
    return low & (part <= most) if name != "valid_min" else low


def expected(operation: str, fields: dict[str, Any], data: Any) -> tuple[list[int], list[int], Any]:
    """Shape, counts and values by numpy.ma."""
    part = data.reshape(fields["shape"], order=fields["order"])
    if "selection" in fields:
        part = part[tuple(slice(*each) for each in fields["selection"])]
    valid = valid_elements(part, fields["missing"])
    if operation == "select":
        return [*part.shape], [int(valid.sum())], part.ravel(fields["order"])
    axes = tuple(fields.get("axis", range(part.ndim)))
    counts = valid.sum(axis=axes, dtype="i8")
    backwards: Any = fields["order"] if axes == () and operation != "count" else "C"
    flat = [int(each) for each in counts.ravel(backwards)]
    if operation == "count":
        return [*counts.shape], flat, np.array(flat, "i8")
    masked = np.ma.array(part, mask=False if axes == () else ~valid)
    with np.errstate(all="ignore"):
        found = getattr(np.ma, operation)(
            masked, axis=axes, **({"dtype": part.dtype} if operation == "sum" else {})
        )
    return [*counts.shape], flat, np.ma.asarray(found).astype(part.dtype).ravel(backwards)


@settings(max_examples=150, deadline=None)
@given(requests())
def test_both_ways_agree_with_numpy(request: tuple[str, dict[str, Any], Any]) -> None:
    operation, fields, data = request
    args = asked(operation, **fields)
    foreign = fields["byte_order"] not in (None, sys.byteorder)
    raw = (data.byteswap() if foreign else data).tobytes()
    selected = data.reshape(fields["shape"])
    if "selection" in fields:
        selected = selected[tuple(slice(*each) for each in fields["selection"])]
    for way in (reduce.by_numpy, reduce.by_hand):
        if not selected.size and operation in ("min", "max"):
            with pytest.raises(reduce.UnfitData, match="empty array or selection"):
                way(raw, args)
            continue
        with np.errstate(all="ignore"):
            shape, counts, values = way(raw, args)
        wanted_shape, wanted_counts, wanted = expected(operation, fields, data)
        assert (shape, counts) == (wanted_shape, wanted_counts), way
        found = np.frombuffer(values, wanted.dtype)
        none = np.array(counts) == 0
        if operation in ("min", "max") and fields.get("axis") != []:
            assert {*found[none].tolist()} <= {reduce.bounds(args["code"])[operation == "min"]}
        there = ~np.ma.getmaskarray(wanted) if isinstance(wanted, np.ma.MaskedArray) else np.s_[:]
        np.testing.assert_allclose(
            found[there], np.asarray(wanted)[there], rtol=1e-5, err_msg=str(way)
        )


@pytest.mark.parametrize(
    ("operation", "fields", "said"),
    [
        ("mean", {}, "unsupported operation mean"),
        ("sum", {"dtype": "int8"}, "dtype must be one of"),
        ("sum", {"dtype": None}, "dtype must be one of"),
        ("sum", {"interface_type": "file"}, "interface_type must be one of"),
        ("sum", {"url": "http://x/"}, "url must have a path"),
        ("sum", {"url": "http://x/a%ff"}, "url must have a path"),
        ("sum", {"url": "http://[x/a"}, "url must have a path"),
        ("sum", {"url": 5}, "url must have a path"),
        ("sum", {"unheard": 1}, "unknown field 'unheard'"),
        ("sum", {"byte_order": "middle"}, "byte_order must be"),
        ("sum", {"offset": -1}, "offset must be"),
        ("sum", {"offset": ""}, "offset must be"),
        ("sum", {"order": ""}, "order must be"),
        ("sum", {"filters": {}}, "filters must be a list"),
        ("sum", {"offset": True}, "offset must be"),
        ("sum", {"offset": 1 << 63}, "offset must be"),
        ("sum", {"offset": (1 << 63) - 4, "size": 8}, "size must be"),
        ("sum", {"size": 0}, "size must be"),
        ("sum", {"size": 7}, "multiple of dtype size"),
        ("sum", {"size": 8, "shape": [3]}, "equal to the product"),
        ("sum", {"size": (1 << 30) + 4}, "Insufficient memory"),
        ("sum", {"shape": [1 << 20, 1 << 20]}, "Insufficient memory"),
        ("sum", {"shape": [1 << 62] * 32}, "Insufficient memory"),
        ("sum", {"shape": []}, "shape must be a list"),
        ("sum", {"shape": [1] * 33}, "shape must be a list"),
        ("sum", {"shape": [0]}, "a length of shape"),
        ("sum", {"shape": [2.0]}, "a length of shape"),
        ("sum", {"shape": {}}, "shape must be a list"),
        ("sum", {"axis": 0}, "Axis requires shape"),
        ("sum", {"shape": [2], "axis": 1}, "axis must be"),
        ("sum", {"shape": [2, 2], "axis": [1, 0]}, "ascending order"),
        ("sum", {"shape": [2, 2], "axis": [0, 0]}, "ascending order"),
        ("sum", {"shape": [2], "axis": [0, 0]}, "axis must be a list"),
        ("sum", {"order": "A"}, "order must be"),
        ("sum", {"selection": [[0, 1, 1]]}, "Selection requires shape"),
        ("sum", {"shape": [2], "selection": []}, "same length"),
        ("sum", {"shape": [2], "selection": [[0, 1]]}, "a selection must be a list"),
        ("sum", {"shape": [2], "selection": [[0, 1, 0]]}, "stride must not be"),
        ("sum", {"shape": [2], "selection": [[0, 1 << 63, 1]]}, "a number of selection"),
        ("sum", {"shape": [2], "selection": [[0, "1", 1]]}, "a number of selection"),
        ("sum", {"compression": {"id": "blosc2"}}, "compression must be one of gzip, zlib"),
        ("sum", {"compression": "gzip"}, "compression must be an object"),
        ("sum", {"filters": [{"id": "crc"}]}, "id of a filter"),
        ("sum", {"filters": [{"id": "shuffle", "element_size": 0}]}, "element_size must be"),
        ("sum", {"filters": [{"id": "shuffle", "element_size": 1 << 40}]}, "element_size must be"),
        ("sum", {"missing": {}}, "exactly one field"),
        ("sum", {"missing": {"missing_value": 1, "valid_min": 2}}, "exactly one field"),
        ("sum", {"missing": {"missing_value": 1.5}}, "Incompatible value 1.5"),
        ("sum", {"missing": {"missing_value": 1 << 31}}, "Incompatible value 2147483648"),
        ("sum", {"dtype": "uint32", "missing": {"missing_value": -1}}, "Incompatible value -1"),
        ("sum", {"dtype": "float32", "missing": {"missing_value": 1e39}}, "Incompatible value"),
        ("sum", {"missing": {"valid_range": [2, 1]}}, "min must be less than max"),
        ("sum", {"missing": {"valid_range": [1]}}, "valid_range must be a list"),
        ("sum", {"missing": {"missing_values": [0] * 1025}}, "missing_values must be a list"),
        ("sum", {"option_count_as_bytes": 1}, "option_count_as_bytes must be"),
    ],
)
def test_wrong_requests(operation: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ArrayRefusal) as caught:
        asked(operation, **fields)
    assert said in "; ".join([str(caught.value), *caught.value.causes])


@pytest.mark.parametrize("body", [b"", b"[]", b'{"dtype": NaN}', b"[" * 9000, b"\xff"])
def test_bodies_that_are_no_requests(body: bytes) -> None:
    with pytest.raises(ArrayRefusal, match="request data is not valid"):
        checked("sum", body)


# ---- over the wire -------------------------------------------------------------------------------


def item(data: bytes, at: int = 0) -> tuple[Any, int]:
    """An item of CBOR, and where it ends."""
    major, low = data[at] >> 5, data[at] & 31
    width = {24: 1, 25: 2, 26: 4, 27: 8}.get(low, 0)
    at, number = (
        at + 1 + width,
        int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else low,
    )
    if major in (2, 3):
        raw = data[at : at + number]
        return raw if major == 2 else raw.decode(), at + number
    if major == 0:
        return number, at
    found = []
    for _ in range(number * (2 if major == 5 else 1)):
        each, at = item(data, at)
        found.append(each)
    return dict(zip(found[::2], found[1::2], strict=True)) if major == 5 else found, at


class Reductions:
    """`osd reductionist`, and requests to it."""

    def __init__(self, url: str, *options: str) -> None:
        command = [sys.executable, "-c", OSD, "reductionist", "--target", url, *options]
        self.process = warm.Python(
            [*command, "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
            env=client_environment(),
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("serving at "), line + self.process.stderr.read()
        self.url = line.split()[-1]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        _, rest = self.process.communicate(timeout=20)
        assert (self.process.returncode, rest) == (0, "")

    def ask(self, operation: str, code: int = 200, slash: str = "/", **fields: Any) -> Any:
        """The answer: what the client of PyActiveStorage decodes, or the error."""
        body = json.dumps({name: each for name, each in fields.items() if each is not None})
        request = urllib.request.Request(
            f"{self.url}/v2/{operation}{slash}",
            body.encode(),
            {"Content-Type": "application/json"},
        )
        status, headers, data = self.get(request)
        assert status == code, data
        if code != 200:
            return json.loads(data)["error"]
        assert headers["Content-Type"] == "application/cbor"
        found, end = item(data)
        assert end == len(data)
        return found

    def get(self, request: urllib.request.Request | str) -> tuple[int, Any, bytes]:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.headers, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    from_registry("numpy", NUMPY)
    words = ("--isolation", "best", "--package-sets", str(SETS))
    with shared(*words, "--pool", "numpy:packages=numpy,max=2,min=1") as served:
        yield served


@pytest.fixture(scope="module", params=["", "numpy"])
def api(serving: Serving, request: pytest.FixtureRequest) -> Iterator[Reductions]:
    found = Reductions(serving.url, *(["--pool", request.param] if request.param else []))
    yield found
    found.stop()


Put = Callable[..., dict[str, Any]]


@pytest.fixture
def session(serving: Serving) -> Iterator[pyosd.Target]:
    with serving.connect() as target:
        yield target


@pytest.fixture
def put(session: pyosd.Target, api: Reductions) -> Put:
    """Store bytes under a name; the fields that a client sends about it."""
    partition = session.create_partition()

    def put(data: bytes, name: str = "grid.nc") -> dict[str, Any]:
        with session.open(f"/{partition:#x}/{name}", "wb") as file:
            file.write(data)
        return {"interface_type": "https", "url": f"{api.url}/{partition:#x}/{name}"}

    return put


def values(found: dict[str, Any]) -> Any:
    """As PyActiveStorage's decode_result()."""
    return np.frombuffer(found["bytes"], dtype=found["dtype"]).reshape(found["shape"])


pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


def test_the_example_of_the_documentation(api: Reductions, put: Put) -> None:
    data = np.arange(100, dtype=">i4")
    fields = put(bytes(7) + data.tobytes()) | {
        "dtype": "int32",
        "byte_order": "big",
        "offset": 7,
        "size": 400,
        "shape": [20, 5],
        "order": "C",
        "selection": [[0, 19, 2], [1, 3, 1]],
    }
    part = data.astype("i4").reshape(20, 5)[0:19:2, 1:3]
    for operation in ("min", "max", "sum"):
        found = api.ask(operation, **fields)
        assert values(found) == getattr(part, operation)()
        assert (found["dtype"], found["shape"], found["count"]) == ("int32", [], [20])
        assert (found["byte_order"], found["shape_as_bytes"]) == (sys.byteorder, b"")
    found = api.ask("count", slash="", **fields)
    assert (values(found), found["dtype"], found["count"]) == (20, "int64", [20])
    found = api.ask("select", **fields)
    assert (values(found) == part).all() and (found["shape"], found["count"]) == ([10, 2], [20])
    found = api.ask("max", axis=0, missing={"missing_values": [91, 92, 1]}, **fields)
    assert ([*values(found)], found["count"]) == ([81, 82 if 92 > 91 else 0], [8, 9])
    found = api.ask(
        "sum", axis=[0, 1], option_count_as_bytes=True, option_shape_as_bytes=True, **fields
    )
    assert (found["count"], found["shape"], found["shape_as_bytes"]) == ([], [], b"")
    assert np.frombuffer(found["count_as_bytes"], "i8").tolist() == [20]


def shuffled(data: bytes, width: int) -> bytes:
    return np.frombuffer(data, "u1").reshape(-1, width).T.tobytes()


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_a_chunk_as_pyactivestorage_asks_for_it(
    api: Reductions, put: Put, compress: Callable[[bytes], bytes]
) -> None:
    data = np.linspace(200, 300, 3 * 20 * 40, dtype="f4").reshape(3, 20, 40)
    data[1, 2, 3] = np.float32(1e20)
    chunk = compress(shuffled(data.tobytes(), 4))
    fields = put(b"header" + chunk + b"more") | {
        "dtype": "float32",
        "byte_order": "little",
        "offset": 6,
        "size": len(chunk),
        "order": "C",
        "shape": [3, 20, 40],
        "selection": [[0, 2, 1], [1, 3, 1], [0, 40, 1]],
        "compression": {"id": compress.__module__},
        "filters": [{"id": "shuffle", "element_size": 4}],
        "missing": {"missing_value": float(np.float32(1e20))},
        "axis": [0, 1, 2],
        "option_disable_chunk_cache": True,
    }
    part = np.ma.masked_equal(data[0:2, 1:3], np.float32(1e20))
    found = api.ask("sum", **fields)
    assert found["count"] == [part.count()]
    assert values(found) == pytest.approx(part.sum(), rel=1e-5)
    assert values(api.ask("max", **fields)) == part.max()
    told = api.ask("sum", 400, **fields | {"size": len(chunk) - 9})
    assert told["message"] == "failed to decompress data"
    told = api.ask("sum", 400, **fields | {"offset": 0})
    assert told["message"] == "failed to decompress data"
    told = api.ask("sum", 400, **fields | {"shape": [3, 20, 39]})
    assert "must be equal to the product" in told["caused_by"][0]
    told = api.ask("sum", 400, **fields | {"size": len(chunk) + 100})
    assert told["message"] == "error retrieving object from storage"


def test_large_results_leave_no_jobs(api: Reductions, put: Put, session: pyosd.Target) -> None:
    data = np.arange(600_000, dtype="i4")
    fields = put(data.tobytes()) | {"dtype": "int32", "shape": [600_000]}
    assert (values(api.ask("select", **fields)) == data).all()
    assert not session.jobs(PartitionId(int(fields["url"].split("/")[-2], 16)))


def test_refusals(api: Reductions, put: Put, session: pyosd.Target) -> None:
    fields = put(np.arange(8, dtype="i4").tobytes()) | {"dtype": "int32"}
    assert api.ask("mean", 404, **fields)["message"] == "unsupported operation mean"
    told = api.ask("sum", 400, **fields | {"dtype": "int9"})
    assert told["message"] == "request data is not valid" and "dtype" in told["caused_by"][0]
    told = api.ask("sum", 400, **fields | {"url": fields["url"] + "x"})
    assert told["message"] == "error retrieving object from storage"
    told = api.ask("sum", 400, **fields | {"url": fields["url"].rpartition("/")[0]})
    assert "is a directory" in told["caused_by"][0]
    assert api.ask("sum", 400, **fields | {"size": 36})["message"].startswith("error retrieving")
    assert api.ask("sum", 400, **fields | {"offset": 32})["message"].startswith("error retrieving")
    assert "empty" in api.ask("min", 400, shape=[8], selection=[[3, 3, 1]], **fields)["message"]
    assert api.ask("sum", 413, **fields | {"filters": ["x" * 70_000]})["message"]
    assert values(api.ask("sum", **fields)) == 28
    session.functions.remove("iosd-reductionist", force=True)
    assert values(api.ask("sum", **fields)) == 28


def test_data_of_objects(api: Reductions, put: Put) -> None:
    data = bytes(range(256)) * 40_000
    url = put(data)["url"]
    status, headers, found = api.get(url)
    assert (status, found == data, headers["Accept-Ranges"]) == (200, True, "bytes")
    head = urllib.request.Request(url, method="HEAD")
    assert api.get(head)[1]["Content-Length"] == str(len(data))
    part = urllib.request.Request(url, headers={"Range": "bytes=5000000-5000009"})
    status, headers, found = api.get(part)
    assert (status, found) == (206, data[5_000_000:5_000_010])
    assert headers["Content-Range"] == f"bytes 5000000-5000009/{len(data)}"
    for condition, code in ((headers["ETag"], 206), ('"of another version"', 200)):
        asked = {"Range": "bytes=5000000-5000009", "If-Range": condition}
        status, _, found = api.get(urllib.request.Request(url, headers=asked))
        assert (status, found == data) == (code, code == 200)
    for wrong in ("bytes=20000000-", "bytes=9-3", "lines=1-2"):
        status, _, found = api.get(urllib.request.Request(url, headers={"Range": wrong}))
        assert status == 416 and json.loads(found)["error"]["message"]
    rebound = urllib.request.Request(url, headers={"Host": "attacker.example:80"})
    assert api.get(rebound)[0] == 403
    for site, code in (("cross-site", 403), ("none", 200)):
        asked_by = urllib.request.Request(url, headers={"Sec-Fetch-Site": site})
        status, headers, _ = api.get(asked_by)
        assert status == code and headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert api.get(url.replace("127.0.0.1", "localhost"))[0] == 200
    status, _, found = api.get(url + "x")
    assert status == 404 and json.loads(found)["error"]["message"] == "no such object"


def test_paths_that_name_no_object(api: Reductions, put: Put, session: pyosd.Target) -> None:
    """Nor do the files of jobs: a client makes them of other data than that of an object."""
    fields = put(bytes(8)) | {"dtype": "int32"}
    partition = int(fields["url"].split("/")[-2], 16)
    job = session.exec(
        "import osd\nprint('x' * 40)\nosd.result(b'y' * 8)", zone=pyosd.ref(partition)
    )
    job.wait(WAIT_S)
    jobs = f"{api.url}/.jobs/{partition:#x}/{int(job.id.object_id):#x}"
    wrong = [f"{jobs}/result", f"{jobs}/stdout", fields["url"] + "/x", f"{api.url}/{'a' * 5000}"]
    for url in wrong:
        assert api.get(url)[0] == 404, url
        told = api.ask("sum", 400, **fields | {"url": url})
        assert told["message"] == "error retrieving object from storage"


def test_who_may_ask(serving: Serving, tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text("ann:s3cret\n")
    login.chmod(0o600)
    api = Reductions(serving.url, "--password-file", str(login))
    for login_of, code in (
        (None, 401),
        ("ann:wrong", 401),
        ("ann:s3cret", 404),
        ("\N{SNOWMAN}", 401),
        *[("ann:wrong", 401)] * (WRONG_MOST - 2),
        ("ann:s3cret", 429),
    ):
        request = urllib.request.Request(f"{api.url}/0x9999999/x")
        if login_of is not None:
            encoded = base64.b64encode(login_of.encode()).decode()
            request.add_header("Authorization", f"Basic {encoded}")
        assert api.get(request)[0] == code
    api.stop()
    command = [sys.executable, "-c", OSD, "reductionist", "--target", serving.url]
    login.chmod(0o640)
    for words in (
        ["--password-file", str(login)],
        ["--listen", "0.0.0.0:0"],
        ["--listen", "nowhere"],
        ["--certificate", str(login)],
    ):
        assert warm.run([*command, *words], capture_output=True).returncode == 2


def test_requests_outlive_a_kill_of_the_target() -> None:
    """Clients ask without pause while the target is killed and starts again: each gets the right answer."""
    with Serving("--isolation", "best") as served, ThreadPoolExecutor(4) as pool:
        with served.connect() as target:
            partition = target.create_partition()
            target.fs.write_bytes(f"/{partition:#x}/grid", np.arange(5000, dtype="i4").tobytes())
        api = Reductions(served.url)
        fields: dict[str, Any] = {
            "interface_type": "https",
            "url": f"{api.url}/{partition:#x}/grid",
            "dtype": "int32",
        }
        over = threading.Event()

        def ask() -> int:
            asked = 0
            while not over.is_set() or asked < 5:
                assert values(api.ask("sum", **fields)) == 12_497_500
                asked += 1
            return asked

        asking = [pool.submit(ask) for _ in range(4)]
        try:
            for _ in range(2):
                assert values(api.ask("count", **fields)) == 5000
                served.kill("tgtd")
                served.restarted()
        finally:
            over.set()
        assert all(each.result(WAIT_S) >= 5 for each in asking)
        api.stop()
