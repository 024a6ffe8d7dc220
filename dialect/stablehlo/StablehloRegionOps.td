// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by StablehloOps.td. Operations with computations in regions.

class Stablehlo_RegionOp<string mnemonic, list<Trait> traits = []>
    : Stablehlo_Op<mnemonic, !listconcat(traits, [RecursiveMemoryEffects])> {
  let hasVerifier = 1;
}

def Stablehlo_ReturnOp : Stablehlo_Op<"return", [Pure, Terminator, ReturnLike]> {
  let summary = "What a region computes";
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "$results attr-dict (`:` type($results)^)?";
}

def Stablehlo_CaseOp : Stablehlo_RegionOp<"case"> {
  let summary = "The branch that a scalar chooses, the last one for others";
  let arguments = (ins I32Tensor:$index);
  let regions = (region VariadicRegion<SizedRegion<1>>:$branches);
  let results = (outs Variadic<AnyType>);
}

def Stablehlo_IfOp : Stablehlo_RegionOp<"if"> {
  let summary = "One of two branches";
  let arguments = (ins Stablehlo_PredTensor:$pred);
  let regions = (region SizedRegion<1>:$true_branch, SizedRegion<1>:$false_branch);
  let results = (outs Variadic<AnyType>);
}

def Stablehlo_WhileOp : Stablehlo_RegionOp<"while"> {
  let summary = "Repeats a region as long as a condition holds";
  let arguments = (ins Variadic<AnyType>:$operand);
  let regions = (region SizedRegion<1>:$cond, SizedRegion<1>:$body);
  let results = (outs Variadic<AnyType>);
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_MapOp
    : Stablehlo_RegionOp<"map", [SameOperandsAndResultShape]> {
  let summary = "Applies a region to each element";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
                       DenseI64ArrayAttr:$dimensions);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs Stablehlo_AnyTensor:$result);
}

def Stablehlo_ReduceOp
    : Stablehlo_RegionOp<"reduce", [SameVariadicOperandSize]> {
  let summary = "Combines the elements along some dimensions";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
                       Variadic<Stablehlo_AnyTensor>:$init_values,
                       DenseI64ArrayAttr:$dimensions);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_ReduceWindowOp
    : Stablehlo_RegionOp<"reduce_window", [SameVariadicOperandSize]> {
  let summary = "Combines the elements of each window";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
      Variadic<Stablehlo_AnyTensor>:$init_values,
      DenseI64ArrayAttr:$window_dimensions,
      OptionalAttr<DenseI64ArrayAttr>:$window_strides,
      OptionalAttr<DenseI64ArrayAttr>:$base_dilations,
      OptionalAttr<DenseI64ArrayAttr>:$window_dilations,
      OptionalAttr<I64ElementsAttr>:$padding);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_ScatterOp
    : Stablehlo_RegionOp<"scatter", [SameVariadicOperandSize]> {
  let summary = "Tensors with slices updated, where a tensor of indices says";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
      Stablehlo_IntTensor:$scatter_indices,
      Variadic<Stablehlo_AnyTensor>:$updates,
      Stablehlo_ScatterDimensionNumbersAttr:$scatter_dimension_numbers,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$unique_indices);
  let regions = (region SizedRegion<1>:$update_computation);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_SelectAndScatterOp
    : Stablehlo_RegionOp<"select_and_scatter"> {
  let summary = "Adds each value of a source to the selected element of a window";
  let arguments = (ins Stablehlo_AnyTensor:$operand, Stablehlo_AnyTensor:$source,
      Stablehlo_AnyTensor:$init_value,
      OptionalAttr<DenseI64ArrayAttr>:$window_dimensions,
      OptionalAttr<DenseI64ArrayAttr>:$window_strides,
      OptionalAttr<I64ElementsAttr>:$padding);
  let regions = (region SizedRegion<1>:$select, SizedRegion<1>:$scatter);
  let results = (outs Stablehlo_AnyTensor:$result);
}

def Stablehlo_SortOp
    : Stablehlo_RegionOp<"sort", [SameOperandsAndResultShape]> {
  let summary = "Sorts along a dimension, the others the same way";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
      DefaultValuedOptionalAttr<I64Attr, "-1">:$dimension,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$is_stable);
  let regions = (region SizedRegion<1>:$comparator);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}
