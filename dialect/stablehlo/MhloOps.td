// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_MHLOOPS_TD
#define MGPU_DIALECT_STABLEHLO_MHLOOPS_TD

include "dialect/stablehlo/StablehloTypes.td"

def Mhlo_Dialect : Dialect {
  let name = "mhlo";
  let cppNamespace = "::mgpu::mhlo";
  let summary = "XLA's own form of StableHLO: one operation, and attributes";
  let description = [{
    Exported programs carry attributes of this dialect, as `mhlo.sharding`. Of
    its operations they have `mhlo.copy` alone.
  }];
}

def Mhlo_CopyOp : Op<Mhlo_Dialect, "copy", [Pure, SameOperandsAndResultType]> {
  let summary = "Its operand";
  let arguments = (ins Stablehlo_AnyTensor:$operand);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

#endif // MGPU_DIALECT_STABLEHLO_MHLOOPS_TD
