"""Tables of the states of models, compilations, executions, bursts, events and memory.

Each table has a column per state and a row per call; a cell says what the call comes to in that
state, with a word that `ANSWERS` explains. Results are those of NNAPI's ``NeuralNetworks.h`` and
of its runtime, which says what is checked first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from armpy_nnapi import DURATION_UNAVAILABLE, NnapiError, ResultCode

from . import nnapi_world as of
from .nnapi_world import Do, World

BAD_DATA, BAD_STATE, NULL = ResultCode.BAD_DATA, ResultCode.BAD_STATE, ResultCode.UNEXPECTED_NULL
LATE, OP_FAILED = ResultCode.MISSED_DEADLINE_TRANSIENT, ResultCode.OP_FAILED
SHORT, UNMAPPABLE = ResultCode.OUTPUT_INSUFFICIENT_SIZE, ResultCode.UNMAPPABLE


class Answer(NamedTuple):
    """What a call comes to: result code, text, and the error's value if it has one."""

    code: ResultCode
    text: str
    value: object = None


ANSWERS = MappingProxyType(
    {
        "begun": Answer(BAD_STATE, "the execution has been started. Make another one"),
        "blank": Answer(OP_FAILED, "the memory has no elements yet"),
        "both": Answer(BAD_DATA, "one memory is an output and something else besides"),
        "broken": Answer(OP_FAILED, "the fence was signalled with an error"),
        "busy": Answer(BAD_STATE, "the execution is under way"),
        "clash": Answer(BAD_DATA, "the dimensions are not those that are known"),
        "closed": Answer(BAD_STATE, "is closed"),
        "code": Answer(BAD_DATA, "unknown duration", DURATION_UNAVAILABLE),
        "computing": Answer(BAD_STATE, "a thread computes in the burst"),
        "dead": Answer(BAD_STATE, "the compilation failed or is closed. Make another one"),
        "done": Answer(BAD_STATE, "the compilation is finished. Make another one"),
        "early": Answer(BAD_STATE, "the execution has not ended well. Call compute, or wait"),
        "empty": Answer(BAD_DATA, "there are no operands. Call Model.add_operand"),
        "extension": Answer(BAD_DATA, "the operand is not of an extension's type"),
        "failed": Answer(OP_FAILED, "planted"),
        "final": Answer(BAD_STATE, r"Model\.\w+.*: the model is finished"),
        "frequency": Answer(BAD_DATA, "the frequency cannot be"),
        "hidden": Answer(BAD_DATA, "cannot be looked into.*Memory.copy"),
        "index": Answer(
            BAD_DATA,
            r"(_input\S*: the input|_output\S*: the output|Model\.\S+: the operand)'s index "
            "is out of range. Expected an index below",
        ),
        "invalid": Answer(BAD_STATE, "the model is invalid"),
        "kind": Answer(BAD_DATA, "an argument is of the wrong kind. Expected"),
        "late": Answer(LATE, "still goes on"),
        "length": Answer(BAD_DATA, "wrong length. Expected 8 bytes.*got 12 bytes"),
        "no-fence": Answer(BAD_DATA, "there is no fence", -1),
        "no-in": Answer(BAD_DATA, "input 0 is not set"),
        "no-out": Answer(BAD_DATA, "output 0 is not set"),
        "not-yet": Answer(BAD_STATE, "the execution has not ended well", DURATION_UNAVAILABLE),
        "null": Answer(NULL, "is None"),
        "occupied": Answer(BAD_STATE, "another thread computes in the burst, or it is closed"),
        "open": Answer(BAD_STATE, "the description is not finished"),
        "operand": Answer(BAD_DATA, "input 0 is an operand that does not exist"),
        "other": Answer(BAD_DATA, "the execution is of another compilation"),
        "preference": Answer(BAD_DATA, "unknown preference. Expected LOW_POWER .* got 3"),
        "priority": Answer(BAD_DATA, "unknown priority.* got 91"),
        "rank-1": Answer(SHORT, "output 0 does not fit its buffer", 1),
        "read-only": Answer(BAD_DATA, "the memory is read-only"),
        "refused": Answer(BAD_DATA, "the compilation is not finished"),
        "role": Answer(BAD_DATA, "the memory was not made for this"),
        "roleless": Answer(BAD_DATA, "no role was added"),
        "roles": Answer(BAD_DATA, "has other roles"),
        "same": Answer(BAD_DATA, "the role is there already"),
        "sealed": Answer(BAD_STATE, "the description is finished"),
        "set": Answer(BAD_STATE, "the (input|output) is set already"),
        "shape": Answer(BAD_DATA, "the dimensions are not those of the model"),
        "size-2": Answer(SHORT, "output 0 does not fit its buffer", (2,)),
        "time": Answer(BAD_DATA, "the time is below 0|a duration is negative"),
        "token": Answer(BAD_DATA, "the token has the wrong length"),
        "device": Answer(BAD_DATA, "only .*one chosen device.* got (none was chosen|2 devices)"),
        "unready": Answer(BAD_STATE, "is not finished. Call (Model|Compilation).finish first"),
        "untimed": Answer(BAD_STATE, "the execution was not measured", DURATION_UNAVAILABLE),
        "unusable": Answer(BAD_STATE, "the compilation is not ready"),
        "void": Answer(BAD_DATA, "the source has no elements yet"),
        "whole": Answer(BAD_DATA, "is used as a whole"),
        "writable": Answer(UNMAPPABLE, "the memory is read-only"),
    }
)
"""Meaning of each word of the tables; a dot stands for a call that succeeds."""


MODEL = """
                       empty    complete   finished  invalid
add_operand            .        .          final     invalid
add_operand:None       null     null       null      null
set_value              index    .          final     invalid
set_memory             index    .          final     invalid
set_memory:None        null     null       null      null
set_model              index    .          final     invalid
set_model:None         null     null       null      null
set_scales             index    .          final     invalid
set_scales:None        null     null       null      null
set_extension_data     index    extension  final     invalid
add_operation          operand  .          final     invalid
add_operation:None,[]  null     null       null      null
add_operation:[],None  null     null       null      null
identify               .        .          final     invalid
identify:None,[]       null     null       null      null
identify:[],None       null     null       null      null
relax                  .        .          final     invalid
finish                 empty    .          final     invalid
description            unready  unready    .         invalid
operation_order        unready  unready    .         invalid
as_value               unready  unready    .         invalid
Compilation            unready  unready    .         invalid
Compilation:None       null     null       null      null
Compilation:text       kind     kind       kind      kind
create_for_devices     unready  unready    .         invalid
supported_operations   unready  unready    .         invalid
"""

COMPILATION = """
                   open        for-one     for-two     finished  failed   closed
set_preference     .           .           .           done      done     done
set_preference:3   preference  preference  preference  done      done     done
set_priority       .           .           .           done      done     done
set_priority:91    priority    priority    priority    done      done     done
set_timeout        device      .           device      done      done     done
set_timeout:-1     device      time        device      done      done     done
set_caching        .           .           .           done      done     done
set_caching:None   null        null        null        null      null     null
set_caching:token  token       token       token       done      done     done
finish             .           .           .           done      done     done
Execution          unready     unready     unready     .         dead     dead
Execution:None     null        null        null        null      null     null
Execution:text     kind        kind        kind        kind      kind     kind
Burst              unready     unready     unready     .         dead     dead
Burst:None         null        null        null        null      null     null
Burst:text         kind        kind        kind        kind      kind     kind
call               unready     unready     unready     .         dead     dead
network            unusable    unusable    unusable    .         closed   closed
alignment:in       unready     unready     unready     .         dead     dead
padding:in         unready     unready     unready     .         dead     dead
alignment:out      unready     unready     unready     .         dead     dead
padding:out        unready     unready     unready     .         dead     dead
padding:out,9      unready     unready     unready     index     dead     dead
add_input_role     refused     refused     refused     .         refused  refused
add_output_role    refused     refused     refused     .         refused  refused
free               .           .           .           .         .        .
close              .           .           .           .         .        .
"""

EXECUTION = """
                     new      ready    running  waiting  ended    failed   short    closed   orphan
set_input            .        set      begun    begun    begun    begun    begun    set      set
set_input:9          index    index    begun    begun    begun    begun    begun    index    index
set_input:-1         index    index    begun    begun    begun    begun    begun    index    index
set_input:long       length   set      begun    begun    begun    begun    begun    set      set
set_input:three      shape    shape    begun    begun    begun    begun    begun    shape    shape
set_output           .        set      begun    begun    begun    begun    begun    set      set
set_output:9         index    index    begun    begun    begun    begun    begun    index    index
set_output:-1        index    index    begun    begun    begun    begun    begun    index    index
input_memory         .        set      begun    begun    begun    begun    begun    set      set
input_memory:-1      index    index    begun    begun    begun    begun    begun    index    index
input_memory:9       index    index    begun    begun    begun    begun    begun    index    index
input_memory:None    null     null     null     null     null     null     null     null     null
output_memory        .        set      begun    begun    begun    begun    begun    set      set
output_memory:9      index    index    begun    begun    begun    begun    begun    index    index
output_memory:-1     index    index    begun    begun    begun    begun    begun    index    index
output_memory:None   null     null     null     null     null     null     null     null     null
set_measure_timing   .        .        begun    begun    begun    begun    begun    .        .
set_timeout          .        .        begun    begun    begun    begun    begun    .        .
set_timeout:-1       time     time     begun    begun    begun    begun    begun    time     time
set_loop_timeout     .        .        begun    begun    begun    begun    begun    .        .
set_loop_timeout:-1  time     time     begun    begun    begun    begun    begun    time     time
set_reusable         .        .        begun    begun    begun    begun    begun    .        .
compute              no-in    .        begun    begun    begun    begun    begun    closed   closed
burst                no-in    .        begun    begun    begun    begun    begun    closed   closed
run                  .        set      begun    begun    begun    begun    begun    set      set
start                no-in    .        begun    begun    begun    begun    begun    closed   dead
fenced               no-out   .        begun    begun    begun    begun    begun    closed   dead
fenced:time          no-out   .        begun    begun    begun    begun    begun    closed   dead
fenced:-1            time     time     begun    begun    begun    begun    begun    closed   dead
fenced:None          null     null     null     null     null     null     null     null     dead
fenced:[None]        null     null     null     null     null     null     null     null     dead
fenced:[7]           kind     kind     kind     kind     kind     kind     kind     kind     dead
rank                 early    early    early    early    .        early    rank-1   early    early
rank:9               early    early    early    early    index    early    index    early    early
rank:-1              early    early    early    early    index    early    index    early    early
dimensions           early    early    early    early    .        early    size-2   early    early
dimensions:9         early    early    early    early    index    early    index    early    early
dimensions:-1        early    early    early    early    index    early    index    early    early
duration             not-yet  not-yet  not-yet  not-yet  untimed  not-yet  not-yet  not-yet  not-yet
duration:4           code     code     code     code     code     code     code     code     code
release              .        .        .        .        .        .        .        .        .
close                .        .        begun    begun    .        .        .        .        .
"""

REUSABLE = """
                    ready   running ended   failed  closed  orphan  orphaned any     any-end two
set_input           set     begun   begun   begun   begun   set     begun    set     begun   .
set_input:9         index   begun   begun   begun   begun   index   begun    index   begun   index
set_input:-1        index   begun   begun   begun   begun   index   begun    index   begun   index
set_input:long      set     begun   begun   begun   begun   set     begun    set     begun   length
set_input:three     shape   begun   begun   begun   begun   shape   begun    shape   begun   shape
set_output          set     begun   begun   begun   begun   set     begun    set     begun   .
set_output:9        index   begun   begun   begun   begun   index   begun    index   begun   index
set_output:-1       index   begun   begun   begun   begun   index   begun    index   begun   index
input_memory        set     begun   begun   begun   begun   set     begun    set     begun   .
input_memory:-1     index   begun   begun   begun   begun   index   begun    index   begun   index
input_memory:9      index   begun   begun   begun   begun   index   begun    index   begun   index
input_memory:None   null    null    null    null    null    null    null     null    null    null
output_memory       set     begun   begun   begun   begun   set     begun    set     begun   .
output_memory:9     index   begun   begun   begun   begun   index   begun    index   begun   index
output_memory:-1    index   begun   begun   begun   begun   index   begun    index   begun   index
output_memory:None  null    null    null    null    null    null    null     null    null    null
set_measure_timing  .       begun   begun   begun   begun   .       begun    device  device  device
set_timeout         .       begun   begun   begun   begun   .       begun    device  device  device
set_timeout:-1      time    begun   begun   begun   begun   time    begun    device  device  device
set_loop_timeout    .       begun   begun   begun   begun   .       begun    .       begun   .
set_loop_timeout:-1 time    begun   begun   begun   begun   time    begun    time    begun   time
set_reusable        .       begun   begun   begun   begun   .       begun    .       begun   .
compute             .       busy    .       .       closed  closed  closed   .       begun   no-in
burst               .       busy    .       .       closed  closed  closed   .       begun   no-in
run                 set     begun   begun   begun   begun   set     begun    set     begun   .
start               .       busy    .       .       closed  dead    dead     .       begun   no-in
fenced              .       busy    .       .       closed  dead    dead     .       begun   no-out
fenced:time         .       busy    .       .       closed  dead    dead     device  begun   device
fenced:-1           time    busy    time    time    closed  dead    dead     time    begun   time
fenced:None         null    null    null    null    null    dead    dead     null    null    null
fenced:[None]       null    null    null    null    null    dead    dead     null    null    null
fenced:[7]          kind    kind    kind    kind    kind    dead    dead     kind    kind    kind
rank                early   early   .       early   .       early   .        early   .       early
rank:9              early   early   index   early   index   early   index    early   index   early
rank:-1             early   early   index   early   index   early   index    early   index   early
dimensions          early   early   .       early   .       early   .        early   .       early
dimensions:9        early   early   index   early   index   early   index    early   index   early
dimensions:-1       early   early   index   early   index   early   index    early   index   early
duration            not-yet not-yet untimed not-yet untimed not-yet untimed  not-yet untimed not-yet
duration:4          code    code    code    code    code    code    code     code    code    code
release             .       .       .       .       .       .       .        .       .       .
close               .       busy    .       .       .       .       .        .       .       .
"""

BURST = """
                 idle   computing  closed
compute          .      occupied   occupied
compute:unset    no-in  occupied   occupied
compute:None     null   null       null
compute:text     kind   kind       kind
compute:foreign  other  other      other
close            .      computing  .
"""

EVENT = """
         running   done      failed    f-running  f-done  f-failed  pipe  signalled  broken
wait:0   late      .         failed    late       .       failed    late  .          broken
wait:-1  late      .         failed    late       .       failed    late  .          broken
is_done  .         .         .         .          .       .         .     .          .
fence    no-fence  no-fence  no-fence  .          .       .         .     .          .
"""

DESCRIPTION = """
                  empty      roles      finished
input             .          .          sealed
input:same        .          same       sealed
input:2           index      index      sealed
input:-1          index      index      sealed
input:None        null       null       null
input:model       kind       kind       kind
input:unfinished  refused    refused    sealed
input:0.0         frequency  frequency  sealed
output            .          same       sealed
output:1          index      index      sealed
output:-1         index      index      sealed
dimensions        .          .          sealed
dimensions:3      .          clash      sealed
dimensions:None   null       null       null
finish            roleless   .          sealed
create            open       open       .
create:None       null       null       null
"""

MEMORY = """
               writable  read-only  closed  d-new     d-full    d-gone    h-new   h-full  h-gone
size           .         .          closed  .       .       closed  .       .       closed
data           .         .          closed  hidden  hidden  hidden  hidden  hidden  hidden
is_writable    .         .          closed  .       .       .       .       .       .
constant       .         .          closed  roles   roles   roles   roles   roles   roles
input          .         .          closed  .       .       closed  .       .       closed
input:part     .         .          closed  whole   whole   closed  whole   whole   closed
input:1        .         .          closed  role    role    closed  role    role    closed
input:foreign  .         .          closed  role    role    closed  role    role    closed
output         .         read-only  closed  role    role    closed  role    role    closed
compute        .         .          closed  blank   .       closed  blank   .       closed
start          .         .          closed  blank   .       closed  blank   .       closed
copy:out       .         .          closed  void    .       closed  void    .       closed
copy:in        .         writable   closed  .       .       closed  .       .       closed
copy:self      .         .          .       .       .       .       .       .       .
copy:None      null      null       null    null    null    null    null    null    null
copy:None,in   null      null       null    null    null    null    null    null    null
copy:bytes     kind      kind       kind    kind    kind    kind    kind    kind    kind
close          .         .          .       .       .       .       .       .       .
"""

TABLES = {
    "model": (MODEL, of.MODEL_STATES, of.MODEL_CALLS),
    "compilation": (COMPILATION, of.COMPILATION_STATES, of.COMPILATION_CALLS),
    "execution": (EXECUTION, of.EXECUTION_STATES, of.EXECUTION_CALLS),
    "reusable": (REUSABLE, of.REUSABLE_STATES, of.EXECUTION_CALLS),
    "burst": (BURST, of.BURST_STATES, of.BURST_CALLS),
    "event": (EVENT, of.EVENT_STATES, of.EVENT_CALLS),
    "description": (DESCRIPTION, of.DESCRIPTION_STATES, of.DESCRIPTION_CALLS),
    "memory": (MEMORY, of.MEMORY_STATES, of.MEMORY_CALLS),
}


FATAL = {
    ("empty", "finish"),
    *((state, call) for state in ("orphan", "orphaned") for call in ("compute", "burst")),
    *((state, call) for state in ("d-new", "h-new") for call in ("compute", "start")),
}
"""Refused calls that leave another state: the model is invalid, the execution has been started, or
its arguments are set. Each is made in a state of its own."""

STATES = [(name, state) for name, (_, states, _) in TABLES.items() for state in states]


def column(name: str, state: str) -> dict[str, str]:
    """What each call on an object comes to in a state."""
    table, states, calls = TABLES[name]
    header, *rows = (line.split() for line in table.strip("\n").splitlines())
    assert header == [*states]
    assert [row[0] for row in rows] == [*calls]
    position = 1 + header.index(state)
    return {row[0]: row[position] for row in rows}


def outcome(world: World, call: Do, word: str) -> str:
    """The word of the table, if the call comes to what it stands for; else what it comes to."""
    try:
        call(world)
    except NnapiError as error:
        answer = ANSWERS.get(word, Answer(ResultCode.NO_ERROR, ""))
        is_right = error.code is answer.code and re.search(answer.text, str(error))
        if is_right and answer.value in (None, error.value):
            return word
        return f"{error}, with {error.value}"
    return "."


def refused(name: str, state: str) -> dict[str, str]:
    """Calls that an object refuses in a state, and what they come to; they change nothing."""
    return {
        call: word
        for call, word in column(name, state).items()
        if word != "." and (state, call) not in FATAL
    }


def outcomes(world: World, name: str, words: Mapping[str, str]) -> dict[str, str]:
    """What calls on an object come to, one after the other."""
    calls = TABLES[name][2]
    return {call: outcome(world, calls[call], word) for call, word in words.items()}
