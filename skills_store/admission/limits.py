"""Limits of a graph: allowed operators, number types and sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Caps:
    """The largest sizes that a graph may have."""

    bytes: int = 256 * 2**20  # of the file
    nodes: int = 10_000
    initializers: int = 10_000
    elements: int = 2**26  # of a tensor without rows: a weight
    row: int = 2**20  # elements in one row of a tensor that depends on the input


CAPS = Caps()

# Pure functions of tensors. Absent on purpose: If, Loop, Scan and the Sequence family (control
# flow), Random* (actions must be reproducible), operators whose output size is an input value
# (ConstantOfShape, Range, Tile, ...), and anything outside the default domain (custom operators are
# native code).
_ALLOWED = """
    Abs Acos Add And ArgMax ArgMin Asin Atan Cast CastLike Ceil Celu Clip Concat Constant Cos Cosh
    CumSum DequantizeLinear Div Einsum Elu Equal Erf Exp Expand Flatten Floor Gather GatherElements
    GatherND Gelu Gemm Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max Mean Min Mish Mod Mul
    Neg Not Or PRelu Pow QuantizeLinear RMSNormalization Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape
    Round ScatterElements ScatterND Selu Shape Sigmoid Sign Sin Sinh Size Slice Softmax Softplus
    Softsign Split Sqrt Squeeze Sub Sum Swish Tan Tanh Transpose Trilu Unsqueeze Where Xor
"""
OPERATORS = frozenset(_ALLOWED.split())
# Expand's output size is an input value, too, but exporters need it for the batch: the value must
# come from a shape or a constant.
SHAPE_OPERATORS = frozenset(
    [
        "Concat",
        "Constant",
        "Gather",
        "Identity",
        "Reshape",
        "Shape",
        "Slice",
        "Squeeze",
        "Unsqueeze",
    ]
)
ROUNDING = frozenset(["DequantizeLinear", "QuantizeLinear"])
DTYPES = ("FLOAT", "FLOAT16", "DOUBLE", "INT8", "UINT8", "INT32", "INT64", "BOOL")
TOLERANCE = 1e-5  # between a graph and its source network, unless the graph is quantized
