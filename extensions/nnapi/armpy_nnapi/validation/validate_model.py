"""Validation of models, and the feature level that they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from armpy.errors import LayerValidationError
from armpy.graph.nesting import MAX_NESTING
from armpy_nnapi.codes import (
    CONTROL_FLOW_CODES,
    LATEST_FEATURE_LEVEL,
    OPERAND_TRAITS,
    FeatureLevel,
    OperandCode,
    OperationCode,
    is_extension,
    operation_name,
)
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.description.operand_type import OperandType, validate_operand_type
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.extensions.validation import check_extensions
from armpy_nnapi.operations import Arguments, definitions
from armpy_nnapi.results import as_bad_data, bad_data, require_data
from armpy_nnapi.validation.described import IModel, described
from armpy_nnapi.validation.validate_control_flow import check_control_flow


def validate_operation(
    node: OperationNode,
    operands: Sequence[Operand],
    referenced: Sequence[Subgraph] = (),
    *,
    feature_level: int = LATEST_FEATURE_LEVEL,
    allow_unknown_sizes: bool = True,
) -> int:
    """Check one operation's operands.

    Parameters
    ----------
    operands : sequence of Operand
        Operands of the graph that the operation is in.
    referenced : sequence of Subgraph
        Graphs that MODEL operands stand for, by index.
    feature_level : int
        The most that the operation may need.
    allow_unknown_sizes : bool
        Whether control flow may have operands whose dimensions are not fully known.

    Returns
    -------
    int
        The lowest feature level that allows the operation with these operands.

    Raises
    ------
    NnapiError
        BAD_DATA if it breaks a rule or needs more; UNEXPECTED_NULL if there is no such
        operation.

    References
    ----------
    NNAPI ``validateOperation``.
    """
    where = operation_name(node.type)
    _check_indexes(node.inputs, len(operands), "input", where)
    _check_indexes(node.outputs, len(operands), "output", where)
    used = (operands[index] for index in (*node.inputs, *node.outputs))
    levels = map(operand_feature_level, used)
    level = max(_required_level(node, operands, referenced, allow_unknown_sizes), *levels)
    require_data(
        level <= feature_level,
        "the operation with these operands needs a higher feature level",
        where=where,
        expected=f"at most {int(feature_level)}",
        actual=str(int(level)),
    )
    return level


def operand_feature_level(operand: Operand) -> int:
    """The lowest feature level that has operands of this type, rank and lifetime."""
    if operand.lifetime is Lifetime.SUBGRAPH:
        return FeatureLevel.LEVEL_4
    if is_extension(operand.type):
        # Extensions came with level 29.
        return FeatureLevel.LEVEL_3
    level = OPERAND_TRAITS[OperandCode(operand.type)].feature_level
    # Before level 3 a dimension could be open, but not their number.
    has_unknown_rank = operand.is_tensor and not operand.dimensions
    return max(level, int(FeatureLevel.LEVEL_3)) if has_unknown_rank else level


def _required_level(
    node: OperationNode,
    operands: Sequence[Operand],
    referenced: Sequence[Subgraph],
    allow_unknown_sizes: bool,
) -> int:
    """The lowest feature level that allows an operation."""
    # The rules of extension and OEM operations are the vendor's; known is only since when NNAPI
    # has had such operations at all.
    if is_extension(node.type):
        return FeatureLevel.LEVEL_3
    if node.type == OperationCode.OEM_OPERATION:
        return FeatureLevel.LEVEL_1
    name = operation_name(node.type)
    try:
        if node.type in CONTROL_FLOW_CODES:
            check_control_flow(node, operands, referenced, allow_unknown_sizes=allow_unknown_sizes)
            return FeatureLevel.LEVEL_4
        definition = definitions().get(node.type)
        if definition is None:
            # NNAPI's code for an operation that it has no registration of.
            raise NnapiError(
                "the operation has no definition", code=ResultCode.UNEXPECTED_NULL, where=name
            )
        inputs = [operands[index] for index in node.inputs]
        outputs = [operands[index] for index in node.outputs]
        arguments = Arguments(definition.match(inputs, outputs), inputs, outputs)
        arguments.check_ranks()
        if definition.check is None:
            return arguments.match.feature_level
        return definition.check(arguments)
    except LayerValidationError as error:
        raise as_bad_data(error, name) from error


def _check_indexes(indexes: Sequence[int], count: int, noun: str, where: str) -> None:
    """Check that operands exist."""
    for position, index in enumerate(indexes):
        require_data(
            0 <= index < count,
            f"{noun} {position} is an operand that does not exist",
            where=where,
            expected=f"0 to {count - 1}" if count else "no index: the model has no operands",
            actual=str(index),
            fix="Pass indexes that Model.add_operand returned",
        )


def check_operand_indexes(graph: Subgraph) -> None:
    """Check that the operands exist that a graph's operations name.

    Raises
    ------
    NnapiError
        BAD_DATA if one does not.
    """
    for number, node in enumerate(graph.operations):
        where = f"operation {number} ({operation_name(node.type)})"
        _check_indexes(node.inputs, len(graph.operands), "input", where)
        _check_indexes(node.outputs, len(graph.operands), "output", where)


def validate_model(model: IModel | ModelDescription, *, for_driver: bool = False) -> int:
    """Check a complete model.

    Parameters
    ----------
    model : Model or ModelDescription
        Operations in an order in which they can run.
    for_driver : bool
        Whether the model is for one device, which takes no WHILE of unknown sizes.

    Returns
    -------
    int
        The lowest feature level that has all its operations in these forms, with operands of these
        types and ranks. Operands that no operation uses do not count.

    Raises
    ------
    NnapiError
        BAD_DATA if it breaks a rule; the text names the operand or operation.

    References
    ----------
    NNAPI ``validateModel``.
    """
    description = described(model, "validate_model")
    _check_references(description)
    check_extensions(description)
    graphs = [("", description.main)]
    graphs += [(f"referenced model {i} / ", g) for i, g in enumerate(description.referenced)]
    return max(_validate_subgraph(where, graph, description, for_driver) for where, graph in graphs)


def _validate_subgraph(
    where: str, graph: Subgraph, description: ModelDescription, for_driver: bool
) -> int:
    """Check one graph of a model; returns the feature level it needs."""
    fix = "Call Model.add_operand and add_operation before finish"
    require_data(bool(graph.operands), "there are no operands", where=f"{where}model", fix=fix)
    require_data(bool(graph.operations), "there are no operations", where=f"{where}model", fix=fix)
    for index, operand in enumerate(graph.operands):
        _check_operand(operand, f"{where}operand {index}", len(description.referenced))
    level = 0
    for number, node in enumerate(graph.operations):
        place = f"{where}operation {number}"
        needed = _validate_node(node, graph, description, for_driver, place)
        level = max(level, needed)
    _check_arguments(graph, graph.inputs, Lifetime.SUBGRAPH_INPUT, f"{where}inputs")
    _check_arguments(graph, graph.outputs, Lifetime.SUBGRAPH_OUTPUT, f"{where}outputs")
    _check_flow(graph, where)
    return level


def _validate_node(
    node: OperationNode,
    graph: Subgraph,
    description: ModelDescription,
    for_driver: bool,
    where: str,
) -> int:
    """Check one operation of a complete model."""
    try:
        level = validate_operation(
            node,
            graph.operands,
            description.referenced,
            allow_unknown_sizes=not for_driver,
        )
    except NnapiError as error:
        # Only here it is known which operation of which graph it is.
        error.where = f"{where} / {error.where}"
        raise
    # Constants are shared between executions, inputs are the caller's: neither may be written.
    for index in node.outputs:
        lifetime = graph.operands[index].lifetime
        require_data(
            lifetime in (Lifetime.TEMPORARY_VARIABLE, Lifetime.SUBGRAPH_OUTPUT),
            f"it writes operand {index}, which operations may not write",
            where=f"{where} / {operation_name(node.type)}",
            expected="TEMPORARY_VARIABLE or SUBGRAPH_OUTPUT",
            actual=lifetime.name,
        )
    return level


def _check_operand(operand: Operand, where: str, num_referenced: int) -> None:
    operand_type = OperandType(operand.type, operand.dimensions, operand.scale, operand.zero_point)
    validate_operand_type(operand_type, operand.extension_type, where=where)
    # No quantised type, but a bias has a scale: that of the inputs times that of the weights.
    if operand.type == OperandCode.TENSOR_INT32:
        require_data(
            operand.scale >= 0 and operand.zero_point == 0,
            "the scale is negative, or the zero point is not 0",
            where=where,
            expected="TENSOR_INT32 with a scale of 0 or more and zero point 0",
            actual=str(operand_type),
        )
    _check_channel_quant(operand, where)
    require_data(
        operand.extension_data is None or is_extension(operand.type),
        "extension data is attached to an operand of another kind of type",
        where=where,
        actual=operand.type_name,
    )
    is_model = operand.type == OperandCode.MODEL
    require_data(
        is_model == (operand.lifetime is Lifetime.SUBGRAPH),
        "operands of type MODEL, and only these, stand for a model",
        where=where,
        actual=f"{operand.type_name} as {operand.lifetime.name}",
    )
    if is_model:
        index = operand.subgraph
        require_data(
            index is not None and 0 <= index < num_referenced,
            "the model that it stands for is not there",
            where=where,
            actual=str(index),
        )
    if operand.lifetime.is_constant:
        _check_constant(operand, where)
    else:
        require_data(
            operand.data is None,
            "it has elements although it is not a constant",
            where=where,
            actual=operand.lifetime.name,
        )


def check_channel_quant(operand: Operand, where: str) -> None:
    """Check the scales of a per-channel quantised operand.

    Raises
    ------
    NnapiError
        BAD_DATA if they do not fit the operand.
    """
    quant = operand.channel_quant
    if operand.type != OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL or quant is None:
        raise bad_data(
            "per-channel scales and TENSOR_QUANT8_SYMM_PER_CHANNEL go together",
            where=where,
            actual=f"{operand.type_name} with{'out' if quant is None else ''} scales",
        )
    require_data(
        0 <= quant.channel_dim < len(operand.dimensions),
        "the channel dimension is out of range",
        where=where,
        expected=f"one of {operand.dimensions}",
        actual=str(quant.channel_dim),
    )
    size = operand.dimensions[quant.channel_dim]
    require_data(
        size != 0 and len(quant.scales) == size,
        "the number of scales is not that of channels",
        where=where,
        expected=f"{size} scales, known and above 0",
        actual=str(len(quant.scales)),
    )
    require_data(
        # NaN is in no range, and refused like the others.
        all(0 < scale < float("inf") for scale in quant.scales),
        "a scale is not above 0",
        where=where,
        actual=str(min(quant.scales)),
    )


def _check_channel_quant(operand: Operand, where: str) -> None:
    """Check per-channel scales where there are any or have to be."""
    has_type = operand.type == OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
    if has_type or operand.channel_quant is not None:
        check_channel_quant(operand, where)


def _check_constant(operand: Operand, where: str) -> None:
    """Check that a constant's elements are there and as many as its type says."""
    if operand.data is None:
        raise bad_data("the constant has no elements", where=where)
    is_known = bool(operand.dimensions) and 0 not in operand.dimensions
    require_data(
        not operand.is_tensor or is_known,
        "a constant's dimensions are not fully known",
        where=where,
        actual=str(operand.dimensions),
    )
    # Only the vendor knows how long elements of OEM and extension types are.
    is_oem = operand.type in (OperandCode.OEM_SCALAR, OperandCode.TENSOR_OEM_BYTE)
    wanted, actual = operand.size_bytes, len(memoryview(operand.data).cast("B"))
    require_data(
        is_oem or is_extension(operand.type) or actual == wanted,
        "the constant has the wrong length",
        where=where,
        expected=f"{wanted} bytes",
        actual=f"{actual} bytes",
    )


def _check_arguments(
    graph: Subgraph, indexes: Sequence[int], lifetime: Lifetime, where: str
) -> None:
    """Check that a graph's list of inputs or outputs agrees with the operands' lifetimes."""
    _check_indexes(indexes, len(graph.operands), "entry", where)
    repeated = [index for index, count in Counter(indexes).items() if count > 1]
    require_data(not repeated, "an operand is listed twice", where=where, actual=str(repeated))
    # Lists give the order of operands in a request, lifetimes the kind of each of them: what is
    # said twice can disagree.
    marked = {i for i, operand in enumerate(graph.operands) if operand.lifetime is lifetime}
    require_data(
        marked == set(indexes),
        f"these are not the operands whose lifetime is {lifetime.name}",
        where=where,
        expected=str(sorted(marked)),
        actual=str(sorted(indexes)),
    )


def _check_flow(graph: Subgraph, where: str) -> None:
    """Check that operands are written once, and before they are read."""
    # Static single assignment: one writer per operand, before all of its readers. Partitioning
    # rests on it, as any part of such a graph is a graph that a device can run by itself.
    written_later = (Lifetime.TEMPORARY_VARIABLE, Lifetime.SUBGRAPH_OUTPUT)
    known = [operand.lifetime not in written_later for operand in graph.operands]
    for number, node in enumerate(graph.operations):
        place = f"{where}operation {number} ({operation_name(node.type)})"
        for index in node.inputs:
            require_data(
                known[index], f"it reads operand {index} before it is written", where=place
            )
        for index in node.outputs:
            require_data(
                not known[index], f"it writes operand {index}, which has been written", where=place
            )
            known[index] = True
    if not all(known):
        raise bad_data("nothing writes it", where=f"{where}operand {known.index(False)}")


def _check_references(description: ModelDescription) -> None:
    """Check that no graph refers to itself, and how deep they are nested."""
    references = [
        [operand.subgraph for operand in graph.operands if operand.subgraph is not None]
        for graph in description.referenced
    ]
    # Depth-first search with a path of its own: how deep models lie in each other is up to the
    # application, and must not be a matter of Python's stack.
    depths: dict[int, int] = {}
    for start in range(len(references)):
        path: list[int] = [start]
        waiting = [list(references[start])] if start not in depths else []
        while waiting:
            if not waiting[-1]:
                waiting.pop()
                done = path.pop()
                depths[done] = 1 + max((depths.get(i, 0) for i in references[done]), default=0)
                continue
            index = waiting[-1].pop()
            require_data(
                index not in path, "it refers to itself", where=f"referenced model {index}"
            )
            if index not in depths and 0 <= index < len(references):
                path.append(index)
                waiting.append(list(references[index]))
    deepest = max(depths.values(), default=0)
    require_data(
        deepest <= MAX_NESTING,
        "control flow lies too deep in control flow",
        where="model",
        expected=f"at most {MAX_NESTING} levels",
        actual=str(deepest),
    )
