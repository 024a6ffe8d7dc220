// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_CHECKOPS_TD
#define MGPU_DIALECT_STABLEHLO_CHECKOPS_TD

include "dialect/stablehlo/StablehloTypes.td"

def Check_Dialect : Dialect {
  let name = "check";
  let cppNamespace = "::mgpu::check";
  let summary = "What a value must be, in programs that test themselves";
}

class Check_Op<string mnemonic, list<Trait> traits = []>
    : Op<Check_Dialect, mnemonic, traits>;

// A value and what it must be. Both have one shape.
class Check_ExpectOp<string mnemonic> : Check_Op<mnemonic> {
  let arguments = (ins Stablehlo_AnyTensor:$actual, Stablehlo_AnyTensor:$expected);
  let assemblyFormat = [{
    $actual `,` $expected attr-dict `:` custom<OneOrTwoTypes>(type($actual),
                                                     type($expected))
  }];
  let hasVerifier = 1;
}
class Check_ExpectConstOp<string mnemonic>
    : Check_Op<mnemonic, [AllTypesMatch<["actual", "value"]>]> {
  let arguments = (ins Stablehlo_AnyTensor:$actual, ElementsAttr:$value);
  let assemblyFormat = "$actual `,` $value attr-dict";
}

def Check_ExpectEqOp : Check_ExpectOp<"expect_eq"> {
  let summary = "The same bits";
}
def Check_ExpectEqConstOp : Check_ExpectConstOp<"expect_eq_const"> {
  let summary = "The same bits as a constant";
}
def Check_ExpectAlmostEqOp : Check_ExpectOp<"expect_almost_eq"> {
  let summary = "Equal within a tolerance";
  let arguments = (ins Stablehlo_AnyTensor:$actual,
      Stablehlo_AnyTensor:$expected, OptionalAttr<F64Attr>:$tolerance);
}
def Check_ExpectAlmostEqConstOp
    : Check_ExpectConstOp<"expect_almost_eq_const"> {
  let summary = "Equal to a constant within a tolerance";
  let arguments = (ins Stablehlo_AnyTensor:$actual, ElementsAttr:$value,
                       OptionalAttr<F64Attr>:$tolerance);
}
def Check_ExpectCloseOp : Check_ExpectOp<"expect_close"> {
  let summary = "Within some units in the last place";
  let arguments = (ins Stablehlo_AnyTensor:$actual,
      Stablehlo_AnyTensor:$expected,
      DefaultValuedOptionalAttr<I64Attr, "0">:$min_ulp_difference,
      DefaultValuedOptionalAttr<I64Attr, "3">:$max_ulp_difference);
}
def Check_ExpectSerializedEqOp : Check_Op<"expect_serialized_eq"> {
  let summary = "The same as what a probe has saved";
  let arguments = (ins Stablehlo_AnyTensor:$expected, StrAttr:$probe_id,
                       OptionalAttr<I32Attr>:$iter);
  let assemblyFormat = [{
    $expected `,` `probe_id` `=` $probe_id (`,` `iter` `=` $iter^)? attr-dict
    `:` type($expected)
  }];
}

#endif // MGPU_DIALECT_STABLEHLO_CHECKOPS_TD
