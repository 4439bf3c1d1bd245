# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd fn``: functions, code that is stored in the target and called by name."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, DURATION, SIZE, InputFile, InputPath, pool_option
from pyosd.cli.frame.verb import YES, Failure, Listing, Settings, Verb
from pyosd.cli.functions.engines import engines
from pyosd.cli.functions.log import log
from pyosd.cli.functions.names import NAME, PARTITION, check_pool, functions_of
from pyosd.cli.jobs.exec_options import limit_options
from pyosd.cli.jobs.result import as_lists
from pyosd.cli.jobs.script import (
    RIGHTS,
    RIGHTS_OPTION,
    UnfitScript,
    advice_on_rights,
    check_function,
)
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, format_time, print_json
from pyosd.cli.output.terminal import RAW, TEXT_OR_JSON, output_to
from pyosd.commands.pool_status import PoolStatus
from pyosd.functions import Access, Contract, Function, Functions, OutputSize, RecordForm
from pyosd.functions.dialogues import ENGINES
from pyosd.functions.stock import STOCK
from pyosd.types import ROOT, ObjectRef
from pyosd.wire.exec_params import Limits

__all__ = ["fn"]

SCHEMA = "iosd.function/1"
ACCESSES = [each.name.lower() for each in Access]
SIZES = [each.name.lower() for each in OutputSize if each is not OutputSize.FIXED]
RECORDS = [each.name.lower() for each in RecordForm]
COLUMNS = (
    Column("NAME", lambda row: row["name"] or "-", shrink=True),
    Column("ID", lambda row: row["id"]),
    Column("STATE", lambda row: row["state"]),
    Column("ENGINE", lambda row: row["engine"]),
    Column("ACCESS", lambda row: row["access"]),
    Column("SIZE", lambda row: format_bytes(row["size_bytes"]), right=True),
    Column("VERSION", lambda row: row["version"] or "-", shrink=True),
    Column("SHA-256", lambda row: row["sha256"][:12] or "-"),
    Column("METHODS", lambda row: " ".join(row["methods"]), wide=True),
    Column("SIGNER", lambda row: row["signer"] or "-", wide=True, shrink=True),
    Column("POOL", lambda row: row["pool"] or "default", wide=True),
    Column("ACTIVATED", lambda row: format_time(row["activated_ms"]), wide=True),
    Column("DESCRIPTION", lambda row: row["description"] or "-", wide=True, shrink=True),
)


def contract_of(contract: Contract | None) -> JsonRow | None:
    """A contract's record; None: the function has none."""
    if contract is None:
        return None
    records = contract.records.name.lower() if contract.records else None
    return vars(contract) | {"size": contract.size.name.lower(), "records": records}


def record_of(function: Function) -> JsonRow:
    """One function's record."""
    manifest = function.manifest
    limits = {key: value for key, value in vars(manifest.limits).items() if value is not None}
    return {
        "schema": SCHEMA,
        "id": str(function.id),
        "name": manifest.name,
        "state": "active" if function.active else "stored",
        "engine": manifest.engine,
        "access": manifest.access.name.lower(),
        "methods": list(manifest.methods),
        "pool": manifest.pool,
        "limits": limits,
        "contract": contract_of(manifest.contract),
        "version": manifest.version,
        "description": manifest.description,
        "size_bytes": function.size,
        "sha256": function.sha256,
        "signer": function.signer,
        "key": function.fingerprint,
        "activated_ms": function.activated and round(function.activated.timestamp() * 1000),
    }


@click.group(cls=Group)
def fn() -> None:
    """Manage functions: code that is stored in the target and called by name."""


@fn.command(cls=Verb)
@click.argument("code", metavar="FILE", type=InputPath(dir_okay=False))
@click.option("--name", metavar="NAME", default="", help="Name of the function.  [the file's]")
@click.option(
    "--access",
    type=click.Choice(ACCESSES),
    default="none",
    help="Access of calls to their zone: none, read or write.  [none]",
)
@click.option(
    "--method",
    "methods",
    metavar="NAME",
    multiple=True,
    help="Entry point.  May be given more than once; the first is the default.  [main]",
)
@click.option("--engine", metavar="NAME", default="", help="Engine.  [by the file's suffix]")
@pool_option("Pool of the calls.  [the first with the engine]")
@limit_options("limit_wall", "limit_cpu", "limit_mem", "limit_output")
@click.option("--version", metavar="TEXT", default="", help="Version of the code, for people.")
@click.option("--description", metavar="TEXT", default="", help="Description, for people.")
@click.option(
    "--size",
    "size",
    type=click.Choice(SIZES),
    help="Length of the output, of a function that data pass through: same or unknown.",
)
@click.option("--block", type=SIZE, help="Bytes of a block, if each block can be computed alone.")
@click.option(
    "--records",
    type=click.Choice(RECORDS),
    help="Parts of the input that can be computed alone: lines, or lines of a table with a header.",
)
@click.option("--inverse", metavar="NAME", default="", help="Entry point that undoes the first.")
@click.option("--deterministic", is_flag=True, help="The same input always gives the same output.")
@click.option("--optional", is_flag=True, help="Pass the data unchanged if the function fails.")
@click.option(
    "--sign",
    "sign_with",
    metavar="KEY",
    type=InputPath(dir_okay=False),
    help="Sign it with this key of SSH; a public key's file: with ssh-agent.",
)
@click.option("--encrypt", "encrypted", is_flag=True, help="Encrypt the code to the target's key.")
@click.option(
    "--check/--no-check",
    default=True,
    help="Compile a function in Python here before it is sent, and find its entry points.  [yes]",
)
@click.option("--activate/--no-activate", default=True, help="Permit calls of it at once.  [yes]")
@PARTITION
@click.pass_obj
def put(
    settings: Settings,
    /,
    code: str,
    partition: int | None,
    access: str,
    methods: tuple[str, ...],
    limit_wall: float | None,
    limit_cpu: float | None,
    limit_mem: int | None,
    limit_output: int | None,
    size: str | None,
    block: int | None,
    records: str | None,
    inverse: str,
    deterministic: bool,
    optional: bool,
    check: bool,
    **manifest: Any,
) -> None:
    """Store FILE as a function, permit calls of it, and print its id.

    A function of the same name is replaced in one step: each call finds the old version or the new
    one.
    """
    limits = Limits(wall=limit_wall, cpu=limit_cpu, mem=limit_mem, output=limit_output)
    contract = None
    if size:
        contract = Contract(
            OutputSize[size.upper()],
            block or 0,
            None,
            inverse,
            deterministic,
            optional,
            RecordForm[records.upper()] if records else None,
        )
    elif block or records or inverse or deterministic or optional:
        raise click.UsageError("a contract begins with --size")
    methods = methods or ("main",)
    engine = manifest["engine"] or ENGINES.get(Path(code).suffix, "python")
    if check and engine == "python":
        check_function(code, Path(code).read_bytes(), methods)
    if check and engine == "wasm" and not Path(code).read_bytes().startswith(b"\0asm"):
        raise UnfitScript(f"{code} is no module of WebAssembly (--no-check sends it)")
    with settings.connect() as target:
        check_pool(target, manifest["pool"])
        made = functions_of(target, partition).put(
            Path(code),
            access=Access[access.upper()],
            methods=methods,
            limits=limits,
            contract=contract,
            check=False,  # done above, or not wanted
            **manifest,
        )
    click.echo(made.id)


def stock_table() -> str:
    """The functions that come with iosd, as click keeps the lines of a text."""
    width = max(map(len, STOCK))
    rows = (f"  {name:{width}}  {STOCK[name].description}" for name in sorted(STOCK))
    return "\n".join(("\b", "Functions:", *rows))


def stock_of(pools: list[PoolStatus], pool: str) -> list[str]:
    """All that need no package and run in this pool, "": in any.  Prints the names of the others."""
    known = [each for each in sorted(STOCK) if not STOCK[each].package]
    serving = [each for each in pools if pool in ("", each.name) and each.state != "failed"]
    engines = {each.engine or "python" for each in serving}
    lacking = [each for each in known if engines and STOCK[each].engine not in engines]
    if lacking:
        why = f"pool '{pool}' has another engine" if pool else "no pool runs the engine wasm"
        click.echo(f"osd: not stored: {', '.join(lacking)}: {why}", err=True)
    return [each for each in known if each not in lacking]


def names_of_others(functions: Functions) -> dict[str, ObjectRef]:
    """The functions that have a name of one of iosd's, and not its description."""
    try:
        found = functions.ls()
    except errors.NotFound:  # there are none yet
        return {}
    return {
        each.name: each.id
        for each in found
        if each.name in STOCK and each.manifest.description != STOCK[each.name].description
    }


@fn.command(cls=Verb, epilog=stock_table())
@click.argument("names", metavar="[NAME]...", type=click.Choice(sorted(STOCK)), nargs=-1)
@click.option(
    "--sign",
    "sign_with",
    metavar="KEY",
    type=InputPath(dir_okay=False),
    help="Sign them with this key of SSH; a public key's file: with ssh-agent.",
)
@pool_option("Pool of the calls.  [the first with the engine]")
@PARTITION
@click.pass_obj
def stock(
    settings: Settings,
    names: tuple[str, ...],
    sign_with: str | None,
    pool: str,
    partition: int | None,
) -> None:
    """Store functions that come with iosd, for 'osd attach' and 'osd hook', and print their ids.

    Without a NAME: all that the target can run without a package of Python, except those whose name
    another function of the target has. With NAME, it replaces that function. The functions aes-gcm
    and blowfish need cryptography, parquet and zstd need pyarrow: name a pool whose package set has
    it. The functions edge, edge-bitmap, median and thumbnail need a pool of the engine wasm.
    """
    if lacking := [each for each in names if STOCK[each].package and not pool]:
        package = STOCK[lacking[0]].package
        raise click.UsageError(f"'{lacking[0]}' needs --pool: its package set must have {package}")
    with settings.connect() as target:
        check_pool(target, pool)
        functions = functions_of(target, partition)
        others = names_of_others(functions)
        for each in names or stock_of(target.pools(), pool):
            if each in others and not names:
                settings.say(
                    f"osd: not stored: {each}: {others[each]} has the name, and is not of iosd; "
                    f"'osd fn stock {each}' replaces it"
                )
                continue
            click.echo(functions.put_stock(each, pool=pool, sign_with=sign_with).id)
            if each in others:
                settings.say(f"osd: {each}: replaced {others[each]}, which was not of iosd")


@fn.command("ls", cls=Listing)
@PARTITION
@click.pass_obj
def list_(settings: Settings, partition: int | None) -> None:
    """List the functions of the target."""
    with settings.connect() as target:
        try:
            records = [record_of(each) for each in functions_of(target, partition).ls()]
        except errors.NotFound as error:
            if partition is not None:
                raise
            settings.say(f"osd: {error}")
            records = []
    settings.show(records, COLUMNS, "iosd.functions/1", "functions")


@fn.command(cls=Listing)
@click.argument("name", type=NAME)
@PARTITION
@click.pass_obj
def show(settings: Settings, name: str | int | ObjectRef, partition: int | None) -> None:
    """Show a function.  NAME: its name, PID/OID, OID, or 8 digits of its SHA-256."""
    with settings.connect() as target:
        record = record_of(functions_of(target, partition).show(name))
    settings.show_one(record, COLUMNS, wide=True)


@fn.command(cls=Verb)
@click.argument("name", type=NAME)
@PARTITION
@RAW
@click.pass_obj
def code(settings: Settings, name: str | int | ObjectRef, partition: int | None, raw: bool) -> None:
    """Print the code of a function."""
    with settings.connect() as target:
        output_to(sys.stdout, raw).write(functions_of(target, partition).code(name))


@fn.command(cls=Verb)
@click.argument("names", metavar="NAME...", type=NAME, nargs=-1, required=True)
@PARTITION
@click.pass_obj
def activate(
    settings: Settings, names: tuple[str | int | ObjectRef, ...], partition: int | None
) -> None:
    """Permit calls of stored functions, with the code that they have now.

    An active function of the same name is deactivated in the same step.
    """
    with settings.connect() as target:
        for each in names:
            functions_of(target, partition).activate(each)


@fn.command(cls=Verb)
@click.argument("names", metavar="NAME...", type=NAME, nargs=-1, required=True)
@PARTITION
@click.pass_obj
def deactivate(
    settings: Settings, names: tuple[str | int | ObjectRef, ...], partition: int | None
) -> None:
    """End calls of functions; they stay in the store.  Calls under way continue."""
    with settings.connect() as target:
        for each in names:
            functions_of(target, partition).deactivate(each)


@fn.command(cls=Verb)
@click.argument("names", metavar="NAME...", type=NAME, nargs=-1, required=True)
@click.option(
    "--force",
    is_flag=True,
    help="Remove also functions in use.  Calls under way continue with the code that they have.",
)
@PARTITION
@YES
@click.pass_obj
def rm(
    settings: Settings,
    names: tuple[str | int | ObjectRef, ...],
    force: bool,
    partition: int | None,
    yes: bool,
) -> None:
    """Remove functions.  Exit 18 if calls of one are under way; the message names them."""
    if not yes:
        settings.confirm(f"Remove {', '.join(map(str, names))}?")
    with settings.connect() as target:
        for each in names:
            functions_of(target, partition).remove(each, force=force)


@fn.command(cls=Verb)
@click.argument("name", type=NAME)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--zone",
    type=ADDRESS,
    default=ROOT,
    help="Object, partition or root that the function may access, as its access permits.  [root]",
)
@click.option("--method", metavar="NAME", default="", help="Entry point.  [the first]")
@click.option("--json", "document", metavar="TEXT", help="Pass this JSON value instead of ARGS.")
@click.option(
    "--input",
    "file",
    type=InputFile("rb"),
    metavar="FILE",
    help="Pass the bytes of this file instead of ARGS; -: stdin.",
)
@click.option(
    "--parameters",
    metavar="TEXT",
    help="Pass the bytes of --input as 'osd attach NAME:TEXT' passes the data of an object.",
)
@click.option(
    "--record/--no-record",
    default=None,
    help="Keep a record of the call, as of a job.  [if the function may write]",
)
@click.option(
    "--timeout", type=DURATION, help="End a call without a record after this time.  [20s]"
)
@pool_option("Pool of the call.  [the function's]")
@RIGHTS_OPTION
@PARTITION
@RAW
@TEXT_OR_JSON
@click.pass_obj
def call(
    settings: Settings,
    /,
    name: str | int | ObjectRef,
    args: tuple[str, ...],
    document: str | None,
    file: Any,
    parameters: str | None,
    partition: int | None,
    raw: bool,
    rights: str,
    **options: Any,
) -> None:
    """Call a function and print its result.

    The function gets the ARGS as a list of texts; without ARGS it gets None. Bytes are printed
    unchanged, other values as JSON. The exit code is that of a job.
    """
    if parameters is not None and not file:
        raise click.UsageError("--parameters is for the bytes of --input")
    given = argument_of(args, document, file)
    options |= {"parameters": parameters, "rights": RIGHTS[rights]}
    with settings.connect() as target, advice_on_rights(rights):
        value = functions_of(target, partition).call(name, given, **options)
    if settings.output == "json":
        known: JsonRow = {"schema": "iosd.call/1"}
        if isinstance(value, bytes):
            print_json(known | {"result_base64": base64.b64encode(value).decode()})
        else:
            print_json(known | {"result": as_lists(value)})
    elif isinstance(value, bytes):
        output_to(sys.stdout, raw).write(value)
    elif value is not None:
        print_json(as_lists(value))


def argument_of(args: tuple[str, ...], document: str | None, file: Any) -> object:
    """The argument of the function.  Raises: UsageError: it was said in two ways; Failure: no JSON."""
    if len([each for each in (args, document, file) if each]) > 1:
        raise click.UsageError("ARGS, --json and --input exclude each other")
    if file:
        return file.read()
    if document is None:
        return list(args) or None
    try:
        return json.loads(document)
    except ValueError as error:
        raise Failure(Exit.USAGE, f"--json: {error}") from None


for each in (log, engines):
    fn.add_command(each)
