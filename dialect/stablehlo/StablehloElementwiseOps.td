// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by StablehloOps.td. One result element of one element of each
// operand.

// Operands and result have one shape.
class Stablehlo_Elementwise<string mnemonic, list<Trait> traits = []>
    : Stablehlo_Op<mnemonic, !listconcat(traits, [Pure,
          SameOperandsAndResultShape])>;

// Operands and result have one type, apart from quantization.
class Stablehlo_Unary<string mnemonic, Type operandType, Type resultType = operandType>
    : Stablehlo_Elementwise<mnemonic> {
  let arguments = (ins operandType:$operand);
  let results = (outs resultType:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` custom<SameType>(type($operand), type($result))
  }];
  let hasVerifier = 1;
}

// The functions whose result may be asked to be accurate.
class Stablehlo_Function<string mnemonic>
    : Stablehlo_Unary<mnemonic, Stablehlo_FloatOrComplexTensor> {
  let arguments = (ins Stablehlo_FloatOrComplexTensor:$operand,
      OptionalAttr<Stablehlo_ResultAccuracyAttr>:$result_accuracy);
}

class Stablehlo_Binary<string mnemonic, Type type, list<Trait> traits = []>
    : Stablehlo_Elementwise<mnemonic, traits> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict
    `:` custom<SameType>(type($lhs), type($rhs), type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

def Stablehlo_AbsOp : Stablehlo_Unary<"abs", Stablehlo_SignedTensor> {
  let summary = "The absolute value; of a complex number, its magnitude";
}
def Stablehlo_CbrtOp : Stablehlo_Function<"cbrt"> {
  let summary = "The cube root";
}
def Stablehlo_CeilOp : Stablehlo_Unary<"ceil", Stablehlo_FloatTensor> {
  let summary = "The least integer that is not less";
}
def Stablehlo_ConvertOp : Stablehlo_Unary<"convert", Stablehlo_AnyTensor> {
  let summary = "The value in another element type";
  let hasVerifier = 0;
}
def Stablehlo_CosineOp : Stablehlo_Function<"cosine">;
def Stablehlo_ClzOp
    : Stablehlo_Unary<"count_leading_zeros", Stablehlo_IntTensor>;
def Stablehlo_ExpOp : Stablehlo_Function<"exponential">;
def Stablehlo_Expm1Op : Stablehlo_Function<"exponential_minus_one">;
def Stablehlo_FloorOp : Stablehlo_Unary<"floor", Stablehlo_FloatTensor> {
  let summary = "The greatest integer that is not greater";
}
def Stablehlo_ImagOp : Stablehlo_Unary<"imag", Stablehlo_FloatOrComplexTensor> {
  let summary = "The imaginary part";
}
def Stablehlo_IsFiniteOp
    : Stablehlo_Unary<"is_finite", Stablehlo_FloatTensor, Stablehlo_PredTensor> {
  let summary = "Whether the value is neither infinite nor not a number";
  let hasVerifier = 0;
}
def Stablehlo_LogOp : Stablehlo_Function<"log">;
def Stablehlo_Log1pOp : Stablehlo_Function<"log_plus_one">;
def Stablehlo_LogisticOp : Stablehlo_Function<"logistic">;
def Stablehlo_NegOp : Stablehlo_Unary<"negate", Stablehlo_NumberTensor>;
def Stablehlo_NotOp : Stablehlo_Unary<"not", Stablehlo_PredOrIntTensor>;
def Stablehlo_PopulationCountOp
    : Stablehlo_Unary<"popcnt", Stablehlo_IntTensor> {
  let summary = "The number of bits that are set";
}
def Stablehlo_RealOp : Stablehlo_Unary<"real", Stablehlo_FloatOrComplexTensor> {
  let summary = "The real part";
}
def Stablehlo_ReducePrecisionOp : Stablehlo_Elementwise<"reduce_precision"> {
  let summary = "The value rounded to fewer bits";
  let description = [{
    Constraints: there is an exponent bit at least, and `mantissa_bits` is not
    negative.
  }];
  let arguments = (ins Stablehlo_FloatTensor:$operand, I32Attr:$exponent_bits,
                       I32Attr:$mantissa_bits);
  let results = (outs Stablehlo_FloatTensor:$output);
  let assemblyFormat = [{
    $operand `,` `format` `=` custom<Format>($exponent_bits, $mantissa_bits)
    attr-dict `:` custom<SameType>(type($operand), type($output))
  }];
  let hasVerifier = 1;
}
def Stablehlo_RoundOp
    : Stablehlo_Unary<"round_nearest_afz", Stablehlo_FloatTensor> {
  let summary = "The nearest integer; of two, the one away from zero";
}
def Stablehlo_RoundNearestEvenOp
    : Stablehlo_Unary<"round_nearest_even", Stablehlo_FloatTensor> {
  let summary = "The nearest integer; of two, the even one";
}
def Stablehlo_RsqrtOp : Stablehlo_Function<"rsqrt">;
def Stablehlo_SignOp : Stablehlo_Unary<"sign", Stablehlo_SignedTensor>;
def Stablehlo_SineOp : Stablehlo_Function<"sine">;
def Stablehlo_SqrtOp : Stablehlo_Function<"sqrt">;
def Stablehlo_TanOp : Stablehlo_Function<"tan">;
def Stablehlo_TanhOp : Stablehlo_Function<"tanh">;
def Stablehlo_UniformDequantizeOp : Stablehlo_Unary<"uniform_dequantize",
    Stablehlo_Tensor<[Stablehlo_QuantType]>,
    Stablehlo_Tensor<[Stablehlo_FloatType]>> {
  let hasVerifier = 0;
}
def Stablehlo_UniformQuantizeOp : Stablehlo_Unary<"uniform_quantize",
    Stablehlo_FloatTensor, Stablehlo_Tensor<[Stablehlo_QuantType]>> {
  let hasVerifier = 0;
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

def Stablehlo_AddOp
    : Stablehlo_Binary<"add", Stablehlo_AnyTensor, [Commutative]>;
def Stablehlo_AndOp
    : Stablehlo_Binary<"and", Stablehlo_PredOrIntTensor, [Commutative]>;
def Stablehlo_Atan2Op
    : Stablehlo_Binary<"atan2", Stablehlo_FloatOrComplexTensor>;
def Stablehlo_ComplexOp : Stablehlo_Elementwise<"complex"> {
  let summary = "A complex number of its real and its imaginary part";
  let arguments = (ins Stablehlo_FloatTensor:$lhs, Stablehlo_FloatTensor:$rhs);
  let results = (outs Stablehlo_ComplexTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict
    `:` custom<ComplexType>(type($lhs), type($rhs), type($result))
  }];
  let hasVerifier = 1;
}
def Stablehlo_DivOp : Stablehlo_Binary<"divide", Stablehlo_NumberTensor>;
def Stablehlo_MaxOp
    : Stablehlo_Binary<"maximum", Stablehlo_AnyTensor, [Commutative]>;
def Stablehlo_MinOp
    : Stablehlo_Binary<"minimum", Stablehlo_AnyTensor, [Commutative]>;
def Stablehlo_MulOp
    : Stablehlo_Binary<"multiply", Stablehlo_AnyTensor, [Commutative]>;
def Stablehlo_OrOp
    : Stablehlo_Binary<"or", Stablehlo_PredOrIntTensor, [Commutative]>;
def Stablehlo_PowOp : Stablehlo_Binary<"power", Stablehlo_NumberTensor>;
def Stablehlo_RemOp : Stablehlo_Binary<"remainder", Stablehlo_NumberTensor>;
def Stablehlo_ShiftLeftOp : Stablehlo_Binary<"shift_left", Stablehlo_IntTensor>;
def Stablehlo_ShiftRightArithmeticOp
    : Stablehlo_Binary<"shift_right_arithmetic", Stablehlo_IntTensor>;
def Stablehlo_ShiftRightLogicalOp
    : Stablehlo_Binary<"shift_right_logical", Stablehlo_IntTensor>;
def Stablehlo_SubtractOp : Stablehlo_Binary<"subtract", Stablehlo_NumberTensor>;
def Stablehlo_XorOp
    : Stablehlo_Binary<"xor", Stablehlo_PredOrIntTensor, [Commutative]>;

def Stablehlo_CompareOp : Stablehlo_Elementwise<"compare"> {
  let summary = "Whether two values stand in a relation";
  let description = [{
    Constraints: both operands have one element type, and `compare_type` suits
    it: `FLOAT` or `TOTALORDER` floats, `SIGNED` signless integers, `UNSIGNED`
    unsigned ones and `i1`.
  }];
  let arguments = (ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
      Stablehlo_ComparisonDirectionAttr:$comparison_direction,
      OptionalAttr<Stablehlo_ComparisonTypeAttr>:$compare_type);
  let results = (outs Stablehlo_PredTensor:$result);
  let assemblyFormat = [{
    custom<Direction>($comparison_direction) `,` $lhs `,` $rhs
    (`,` custom<CompareType>($compare_type)^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Three operands
//===----------------------------------------------------------------------===//

def Stablehlo_ClampOp : Stablehlo_Op<"clamp", [Pure]> {
  let summary = "The value, or the nearer of two bounds";
  let description = [{
    Constraints: `min` and `max` are scalars or of the operand's shape; all have
    one element type.
  }];
  let arguments = (ins Stablehlo_AnyTensor:$min, Stablehlo_AnyTensor:$operand,
                       Stablehlo_AnyTensor:$max);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    $min `,` $operand `,` $max attr-dict
    `:` custom<SameType>(type($min), type($operand), type($max), type($result))
  }];
  let hasVerifier = 1;
}

def Stablehlo_SelectOp : Stablehlo_Op<"select", [Pure]> {
  let summary = "One of two values";
  let description = [{
    Constraints: `pred` is a scalar or of the result's shape; the values and the
    result have one type.
  }];
  let arguments = (ins Stablehlo_PredTensor:$pred, Stablehlo_AnyTensor:$on_true,
                       Stablehlo_AnyTensor:$on_false);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    operands attr-dict `:` custom<SelectType>(type($pred), type($on_true),
                                              type($on_false), type($result))
  }];
  let hasVerifier = 1;
}
