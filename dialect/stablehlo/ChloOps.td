// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_CHLOOPS_TD
#define MGPU_DIALECT_STABLEHLO_CHLOOPS_TD

include "dialect/stablehlo/StablehloTypes.td"

def Chlo_Dialect : Dialect {
  let name = "chlo";
  let cppNamespace = "::mgpu::chlo";
  let summary = "Functions that exporters write beside StableHLO";
  let description = [{
    Special functions, the largest elements of rows, and elementwise operations
    that broadcast their operands as NumPy does.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

class Chlo_Op<string mnemonic, list<Trait> traits = []>
    : Op<Chlo_Dialect, mnemonic, !listconcat(traits, [Pure])>;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

class Chlo_Unary<string mnemonic, Type resultType = Stablehlo_FloatOrComplexTensor>
    : Chlo_Op<mnemonic, [SameOperandsAndResultShape]> {
  let arguments = (ins Stablehlo_FloatOrComplexTensor:$operand);
  let results = (outs resultType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}
def Chlo_AcosOp : Chlo_Unary<"acos">;
def Chlo_AcoshOp : Chlo_Unary<"acosh">;
def Chlo_AsinOp : Chlo_Unary<"asin">;
def Chlo_AsinhOp : Chlo_Unary<"asinh">;
def Chlo_AtanOp : Chlo_Unary<"atan">;
def Chlo_AtanhOp : Chlo_Unary<"atanh">;
def Chlo_BesselI1eOp : Chlo_Unary<"bessel_i1e">;
def Chlo_ConjOp : Chlo_Unary<"conj">;
def Chlo_CoshOp : Chlo_Unary<"cosh">;
def Chlo_DigammaOp : Chlo_Unary<"digamma">;
def Chlo_ErfOp : Chlo_Unary<"erf">;
def Chlo_ErfInvOp : Chlo_Unary<"erf_inv">;
def Chlo_ErfcOp : Chlo_Unary<"erfc">;
def Chlo_IsInfOp : Chlo_Unary<"is_inf", Stablehlo_PredTensor>;
def Chlo_IsNegInfOp : Chlo_Unary<"is_neg_inf", Stablehlo_PredTensor>;
def Chlo_IsPosInfOp : Chlo_Unary<"is_pos_inf", Stablehlo_PredTensor>;
def Chlo_LgammaOp : Chlo_Unary<"lgamma">;
def Chlo_SinhOp : Chlo_Unary<"sinh">;
def Chlo_SquareOp : Chlo_Unary<"square">;
def Chlo_TanOp : Chlo_Unary<"tan">;

class Chlo_Binary<string mnemonic>
    : Chlo_Op<mnemonic, [SameOperandsAndResultType]> {
  let arguments = (ins Stablehlo_FloatTensor:$lhs, Stablehlo_FloatTensor:$rhs);
  let results = (outs Stablehlo_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}
def Chlo_NextAfterOp : Chlo_Binary<"next_after">;
def Chlo_PolygammaOp : Chlo_Binary<"polygamma">;
def Chlo_ZetaOp : Chlo_Binary<"zeta">;

def Chlo_TopKOp : Chlo_Op<"top_k"> {
  let summary = "The k largest elements of each row, and where they are";
  let description = [{
    Constraints: the operand has rank 1 at least, and `k` elements at least in
    its last dimension; the results have `k` there; the second is of `i32`.
  }];
  let arguments = (ins Stablehlo_AnyTensor:$operand, I64Attr:$k);
  let results = (outs Stablehlo_AnyTensor:$values, Stablehlo_IntTensor:$indices);
  let assemblyFormat = [{
    `(` $operand `,` `k` `=` $k `)` attr-dict
    `:` type($operand) `->` `(` type($values) `,` type($indices) `)`
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Operations that broadcast
//===----------------------------------------------------------------------===//

class Chlo_Broadcasting<string mnemonic> : Chlo_Op<mnemonic> {
  let arguments = (ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
                       OptionalAttr<DenseI64ArrayAttr>:$broadcast_dimensions);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    `(` type($lhs) `,` type($rhs) `)` `->` type($result)
  }];
}
def Chlo_BroadcastAddOp : Chlo_Broadcasting<"broadcast_add">;
def Chlo_BroadcastAndOp : Chlo_Broadcasting<"broadcast_and">;
def Chlo_BroadcastAtan2Op : Chlo_Broadcasting<"broadcast_atan2">;
def Chlo_BroadcastDivOp : Chlo_Broadcasting<"broadcast_divide">;
def Chlo_BroadcastMaxOp : Chlo_Broadcasting<"broadcast_maximum">;
def Chlo_BroadcastMinOp : Chlo_Broadcasting<"broadcast_minimum">;
def Chlo_BroadcastMulOp : Chlo_Broadcasting<"broadcast_multiply">;
def Chlo_BroadcastNextAfterOp : Chlo_Broadcasting<"broadcast_next_after">;
def Chlo_BroadcastOrOp : Chlo_Broadcasting<"broadcast_or">;
def Chlo_BroadcastPowOp : Chlo_Broadcasting<"broadcast_power">;
def Chlo_BroadcastRemOp : Chlo_Broadcasting<"broadcast_remainder">;
def Chlo_BroadcastShiftLeftOp : Chlo_Broadcasting<"broadcast_shift_left">;
def Chlo_BroadcastShiftRightArithmeticOp
    : Chlo_Broadcasting<"broadcast_shift_right_arithmetic">;
def Chlo_BroadcastShiftRightLogicalOp
    : Chlo_Broadcasting<"broadcast_shift_right_logical">;
def Chlo_BroadcastSubOp : Chlo_Broadcasting<"broadcast_subtract">;
def Chlo_BroadcastXorOp : Chlo_Broadcasting<"broadcast_xor">;

class Chlo_Enum<string name, list<string> cases>
    : I32EnumAttr<name, "", !foreach(index, !range(!size(cases)),
          I32EnumAttrCase<cases[index], index>)> {
  let cppNamespace = "::mgpu::chlo";
  let genSpecializedAttr = 0;
}
def Chlo_ComparisonDirection
    : Chlo_Enum<"ComparisonDirection", ["EQ", "NE", "GE", "GT", "LE", "LT"]>;
def Chlo_ComparisonType : Chlo_Enum<"ComparisonType",
    ["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]>;
def Chlo_ComparisonDirectionAttr
    : EnumAttr<Chlo_Dialect, Chlo_ComparisonDirection, "comparison_direction">;
def Chlo_ComparisonTypeAttr
    : EnumAttr<Chlo_Dialect, Chlo_ComparisonType, "comparison_type">;

def Chlo_BroadcastCompareOp : Chlo_Op<"broadcast_compare"> {
  let arguments = (ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
                       OptionalAttr<DenseI64ArrayAttr>:$broadcast_dimensions,
                       Chlo_ComparisonDirectionAttr:$comparison_direction,
                       OptionalAttr<Chlo_ComparisonTypeAttr>:$compare_type);
  let results = (outs Stablehlo_PredTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    `(` type($lhs) `,` type($rhs) `)` `->` type($result)
  }];
}
def Chlo_BroadcastSelectOp : Chlo_Op<"broadcast_select"> {
  let arguments = (ins Stablehlo_PredTensor:$pred, Stablehlo_AnyTensor:$on_true,
                       Stablehlo_AnyTensor:$on_false);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    $pred `,` $on_true `,` $on_false attr-dict `:`
    `(` type($pred) `,` type($on_true) `,` type($on_false) `)` `->`
    type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Products of groups of rows
//===----------------------------------------------------------------------===//

def Chlo_Precision : Chlo_Enum<"Precision", ["DEFAULT", "HIGH", "HIGHEST"]>;
def Chlo_PrecisionAttr : EnumAttr<Chlo_Dialect, Chlo_Precision, "precision">;

def Chlo_RaggedDotDimensionNumbersAttr
    : AttrDef<Chlo_Dialect, "RaggedDotDimensionNumbers"> {
  let mnemonic = "ragged_dot";
  let summary = "What the dimensions of a ragged product mean";
  let parameters = (ins
      ArrayRefParameter<"int64_t">:$lhsBatchingDimensions,
      ArrayRefParameter<"int64_t">:$rhsBatchingDimensions,
      ArrayRefParameter<"int64_t">:$lhsContractingDimensions,
      ArrayRefParameter<"int64_t">:$rhsContractingDimensions,
      ArrayRefParameter<"int64_t">:$lhsRaggedDimensions,
      ArrayRefParameter<"int64_t">:$rhsGroupDimensions);
  let hasCustomAssemblyFormat = 1;
}

def Chlo_RaggedDotOp : Chlo_Op<"ragged_dot"> {
  let summary = "A product whose groups of rows have a matrix each";
  let arguments = (ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
      Stablehlo_IntTensor:$group_sizes,
      Chlo_RaggedDotDimensionNumbersAttr:$ragged_dot_dimension_numbers,
      OptionalAttr<TypedArrayAttrBase<Chlo_PrecisionAttr, "precisions">>
          :$precision_config);
  let results = (outs Stablehlo_AnyTensor:$result);
}

#endif // MGPU_DIALECT_STABLEHLO_CHLOOPS_TD
