"""The loops of a tile: over taps, and over the depth of each."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from armpy_numba_acc.llvm.vectors import I64, load


def walk(builder, rows, taps, num_taps, depth, weights, line, totals, step, last_step=None):
    """Loop over taps and depth with accumulators in registers; their values at the end.

    Parameters
    ----------
    rows : list
        Addresses of the tile's rows.
    taps, num_taps, depth, weights
        Address of the taps' offsets; number of taps and of the steps of each, which are 4
        bytes; address of the first line of weights.
    line
        Bytes from one step's weights to the next.
    totals : list
        The accumulators' initial values.
    step : callable
        ``step(builder, pointers, at_line, totals)`` adds one step to the accumulators, from
        the elements that the pointers point to.
    last_step : callable, optional
        The same for what is left of each tap behind its steps.
    """
    before = builder.block
    tap_loop = builder.append_basic_block("tap")
    depth_loop = builder.append_basic_block("depth")
    tap_end = builder.append_basic_block("tap_end")
    done = builder.append_basic_block("done")
    builder.branch(tap_loop)

    builder.position_at_end(tap_loop)
    tap = builder.phi(I64)
    tap_weights = builder.phi(I64)
    tap_totals = [builder.phi(total.type) for total in totals]
    tap.add_incoming(I64(0), before)
    tap_weights.add_incoming(weights, before)
    for phi, total in zip(tap_totals, totals, strict=True):
        phi.add_incoming(total, before)
    offset = load(builder, taps, I64, tap)
    end = builder.add(offset, builder.mul(depth, I64(4)))
    builder.branch(depth_loop)

    builder.position_at_end(depth_loop)
    index = builder.phi(I64)
    at_line = builder.phi(I64)
    sums = [builder.phi(total.type) for total in totals]
    index.add_incoming(offset, tap_loop)
    at_line.add_incoming(tap_weights, tap_loop)
    for phi, total in zip(sums, tap_totals, strict=True):
        phi.add_incoming(total, tap_loop)
    # Rows are addressed by one index: there are too few registers to move a pointer for each.
    results = step(builder, [builder.add(row, index) for row in rows], at_line, sums)
    following = builder.add(index, I64(4))
    next_line = builder.add(at_line, line)
    index.add_incoming(following, depth_loop)
    at_line.add_incoming(next_line, depth_loop)
    for phi, result in zip(sums, results, strict=True):
        phi.add_incoming(result, depth_loop)
    builder.cbranch(builder.icmp_signed("<", following, end), depth_loop, tap_end)

    builder.position_at_end(tap_end)
    if last_step is not None:
        pointers = [builder.add(row, following) for row in rows]
        results = last_step(builder, pointers, next_line, results)
        next_line = builder.add(next_line, line)
    next_tap = builder.add(tap, I64(1))
    tap.add_incoming(next_tap, tap_end)
    tap_weights.add_incoming(next_line, tap_end)
    for phi, result in zip(tap_totals, results, strict=True):
        phi.add_incoming(result, tap_end)
    builder.cbranch(builder.icmp_signed("<", next_tap, num_taps), tap_loop, done)
    builder.position_at_end(done)
    return results


def rows_of_table(builder, table, rows):
    """Addresses of rows that are in memory."""
    return [load(builder, table, I64, I64(row)) for row in range(rows)]


def rows_in_line(builder, first, pitch, count, rows):
    """Addresses of rows at one distance from each other; those behind the last repeat it."""
    if rows == 1:
        return [first]
    has_all = builder.icmp_signed(">=", count, I64(rows))
    with builder.if_else(has_all, likely=True) as (all_there, some_missing):
        with all_there:
            whole = [builder.add(first, builder.mul(pitch, I64(row))) for row in range(1, rows)]
            end_of_whole = builder.block
        with some_missing:
            part, place = [], first
            for row in range(1, rows):
                is_wanted = builder.icmp_signed("<", I64(row), count)
                place = builder.add(place, builder.select(is_wanted, pitch, I64(0)))
                part.append(place)
            end_of_part = builder.block
    result = [first]
    for one, other in zip(whole, part, strict=True):
        place = builder.phi(I64)
        place.add_incoming(one, end_of_whole)
        place.add_incoming(other, end_of_part)
        result.append(place)
    return result


def rows_of_tile(builder, inputs, pitch, count, rows, has_table: bool):
    """Addresses of rows that are in memory at `inputs`, or else in line from there."""
    if has_table:
        return rows_of_table(builder, inputs, rows)
    return rows_in_line(builder, inputs, pitch, count, rows)


def repeat(builder, count, values, step):
    """Loop at least once with values in registers; what they are in the end.

    Parameters
    ----------
    count
        How often the loop turns.
    values : list
        What they are at first.
    step : callable
        ``step(builder, number, values)`` gives the values behind turn `number`.
    """
    before = builder.block
    loop, done = builder.append_basic_block("repeat"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    number = builder.phi(I64)
    phis = [builder.phi(value.type) for value in values]
    results = step(builder, number, list(phis))
    following = builder.add(number, I64(1))
    last = builder.block
    pairs = [(number, I64(0), following), *zip(phis, values, results, strict=True)]
    for phi, initial, result in pairs:
        phi.add_incoming(initial, before)
        phi.add_incoming(result, last)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
    builder.position_at_end(done)
    return results
