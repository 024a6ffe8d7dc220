// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_STABLEHLOOPS_TD
#define MGPU_DIALECT_STABLEHLO_STABLEHLOOPS_TD

include "dialect/stablehlo/StablehloBase.td"

class Stablehlo_Op<string mnemonic, list<Trait> traits = []>
    : Op<Stablehlo_Dialect, mnemonic, traits>;

include "dialect/stablehlo/StablehloElementwiseOps.td"
include "dialect/stablehlo/StablehloShapeOps.td"
include "dialect/stablehlo/StablehloProductOps.td"
include "dialect/stablehlo/StablehloRegionOps.td"
include "dialect/stablehlo/StablehloCollectiveOps.td"
include "dialect/stablehlo/StablehloOtherOps.td"

#endif // MGPU_DIALECT_STABLEHLO_STABLEHLOOPS_TD
