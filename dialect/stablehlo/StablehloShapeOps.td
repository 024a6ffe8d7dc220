// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by StablehloOps.td. Operations that make, move and cut tensors.

class Stablehlo_ShapeOp<string mnemonic> : Stablehlo_Op<mnemonic, [Pure]> {
  let results = (outs Stablehlo_AnyTensor:$result);
  let hasVerifier = 1;
}

def Stablehlo_ConstantOp
    : Stablehlo_Op<"constant", [Pure, ConstantLike]> {
  let summary = "A tensor of known elements";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Stablehlo_AnyTensor:$output);
  let hasCustomAssemblyFormat = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
    build($_builder, $_state, value.getType(), value);
  }]>];
}

def Stablehlo_IotaOp : Stablehlo_ShapeOp<"iota"> {
  let summary = "Each element's position along a dimension";
  let arguments = (ins I64Attr:$iota_dimension);
  let results = (outs Stablehlo_NumberTensor:$output);
  let assemblyFormat = "`dim` `=` $iota_dimension attr-dict `:` type($output)";
}

def Stablehlo_DynamicIotaOp : Stablehlo_ShapeOp<"dynamic_iota"> {
  let arguments = (ins Stablehlo_SizeTensor:$output_shape, I64Attr:$iota_dimension);
  let results = (outs Stablehlo_NumberTensor:$result);
  let assemblyFormat = [{
    $output_shape `,` `dim` `=` $iota_dimension attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 0;
}

def Stablehlo_BitcastConvertOp : Stablehlo_ShapeOp<"bitcast_convert"> {
  let summary = "The same bits in another element type";
  let description = [{
    Constraints: where the element types have different widths, the wider
    tensor has one dimension less, the last one of the other, whose size is the
    quotient of the widths.
  }];
  let arguments = (ins Stablehlo_AnyTensor:$operand);
  let assemblyFormat = [{
    $operand attr-dict `:` functional-type(operands, results)
  }];
}

def Stablehlo_BroadcastInDimOp : Stablehlo_ShapeOp<"broadcast_in_dim"> {
  let summary = "A tensor repeated along new dimensions and those of size 1";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
                       DenseI64ArrayAttr:$broadcast_dimensions);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $broadcast_dimensions attr-dict
    `:` functional-type(operands, results)
  }];
}

def Stablehlo_BroadcastOp : Stablehlo_ShapeOp<"broadcast"> {
  let summary = "A tensor repeated along new leading dimensions";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
                       DenseI64ArrayAttr:$broadcast_sizes);
  let assemblyFormat = [{
    $operand `,` `sizes` `=` $broadcast_sizes attr-dict
    `:` functional-type(operands, results)
  }];
}

def Stablehlo_DynamicBroadcastInDimOp
    : Stablehlo_ShapeOp<"dynamic_broadcast_in_dim"> {
  let arguments = (ins Stablehlo_AnyTensor:$operand,
      Stablehlo_SizeTensor:$output_dimensions,
      DenseI64ArrayAttr:$broadcast_dimensions,
      OptionalAttr<DenseI64ArrayAttr>:$known_expanding_dimensions,
      OptionalAttr<DenseI64ArrayAttr>:$known_nonexpanding_dimensions);
  let assemblyFormat = [{
    $operand `,` $output_dimensions `,` `dims` `=` $broadcast_dimensions
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 0;
}

def Stablehlo_ConcatenateOp : Stablehlo_ShapeOp<"concatenate"> {
  let summary = "Tensors behind each other along a dimension";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
                       I64Attr:$dimension);
  let assemblyFormat = [{
    custom<OperandsThen>($inputs) `dim` `=` $dimension attr-dict
    `:` functional-type(operands, results)
  }];
}

def Stablehlo_DynamicPadOp : Stablehlo_ShapeOp<"dynamic_pad"> {
  let arguments = (ins Stablehlo_AnyTensor:$operand,
      Stablehlo_AnyTensor:$padding_value,
      Stablehlo_SizeTensor:$edge_padding_low,
      Stablehlo_SizeTensor:$edge_padding_high,
      Stablehlo_SizeTensor:$interior_padding);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 0;
}

def Stablehlo_DynamicReshapeOp : Stablehlo_ShapeOp<"dynamic_reshape"> {
  let arguments = (ins Stablehlo_AnyTensor:$operand,
                       Stablehlo_SizeTensor:$output_shape);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 0;
}

def Stablehlo_DynamicSliceOp : Stablehlo_ShapeOp<"dynamic_slice"> {
  let summary = "A part of a tensor from where scalars say";
  let description = [{
    Start indices are clamped, so that the part lies within the tensor.
  }];
  let arguments = (ins Stablehlo_AnyTensor:$operand,
                       Variadic<Stablehlo_IntTensor>:$start_indices,
                       DenseI64ArrayAttr:$slice_sizes);
  let assemblyFormat = [{
    $operand `,` custom<OperandsThen>($start_indices) `sizes` `=` $slice_sizes
    attr-dict `:` functional-type(operands, results)
  }];
}

def Stablehlo_DynamicUpdateSliceOp
    : Stablehlo_ShapeOp<"dynamic_update_slice"> {
  let summary = "A tensor with one part replaced, from where scalars say";
  let arguments = (ins Stablehlo_AnyTensor:$operand, Stablehlo_AnyTensor:$update,
                       Variadic<Stablehlo_IntTensor>:$start_indices);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Stablehlo_GatherOp : Stablehlo_ShapeOp<"gather"> {
  let summary = "Slices of a tensor, from where a tensor of indices says";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
      Stablehlo_IntTensor:$start_indices,
      Stablehlo_GatherDimensionNumbersAttr:$dimension_numbers,
      DenseI64ArrayAttr:$slice_sizes,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
}

def Stablehlo_DynamicGatherOp : Stablehlo_ShapeOp<"dynamic_gather"> {
  let arguments = (ins Stablehlo_AnyTensor:$operand,
      Stablehlo_IntTensor:$start_indices, Stablehlo_IntTensor:$slice_sizes,
      Stablehlo_GatherDimensionNumbersAttr:$dimension_numbers,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let hasVerifier = 0;
}

def Stablehlo_GetDimensionSizeOp : Stablehlo_ShapeOp<"get_dimension_size"> {
  let summary = "The size of a dimension";
  let arguments = (ins Stablehlo_AnyTensor:$operand, I64Attr:$dimension);
  let results = (outs I32Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `dim` `=` $dimension attr-dict
    `:` functional-type(operands, results)
  }];
}

def Stablehlo_SetDimensionSizeOp : Stablehlo_ShapeOp<"set_dimension_size"> {
  let arguments = (ins Stablehlo_AnyTensor:$operand, I32Tensor:$size,
                       I64Attr:$dimension);
  let assemblyFormat = [{
    $operand `,` $size `,` `dim` `=` $dimension attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 0;
}

def Stablehlo_PadOp : Stablehlo_ShapeOp<"pad"> {
  let summary = "A tensor with a value around and between its elements";
  let description = "Negative padding at the edges removes elements.";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
      Stablehlo_AnyTensor:$padding_value, DenseI64ArrayAttr:$edge_padding_low,
      DenseI64ArrayAttr:$edge_padding_high, DenseI64ArrayAttr:$interior_padding);
  let assemblyFormat = [{
    $operand `,` $padding_value `,` `low` `=` $edge_padding_low
    `,` `high` `=` $edge_padding_high `,` `interior` `=` $interior_padding
    attr-dict `:` functional-type(operands, results)
  }];
}

def Stablehlo_RealDynamicSliceOp : Stablehlo_ShapeOp<"real_dynamic_slice"> {
  let arguments = (ins Stablehlo_AnyTensor:$operand,
      Stablehlo_SizeTensor:$start_indices, Stablehlo_SizeTensor:$limit_indices,
      Stablehlo_SizeTensor:$strides);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 0;
}

def Stablehlo_ReshapeOp : Stablehlo_ShapeOp<"reshape"> {
  let summary = "The same elements in another shape";
  let arguments = (ins Stablehlo_AnyTensor:$operand);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Stablehlo_ReverseOp : Stablehlo_ShapeOp<"reverse"> {
  let summary = "The elements in reverse order along some dimensions";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
                       DenseI64ArrayAttr:$dimensions);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $dimensions attr-dict
    `:` custom<SameType>(type($operand), type($result))
  }];
}

def Stablehlo_SliceOp : Stablehlo_ShapeOp<"slice"> {
  let summary = "A part of a tensor, each n-th element";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
      DenseI64ArrayAttr:$start_indices, DenseI64ArrayAttr:$limit_indices,
      DenseI64ArrayAttr:$strides);
  let assemblyFormat = [{
    $operand custom<Ranges>($start_indices, $limit_indices, $strides) attr-dict
    `:` functional-type(operands, results)
  }];
}

def Stablehlo_TorchIndexSelectOp : Stablehlo_ShapeOp<"torch_index_select"> {
  let arguments = (ins Stablehlo_AnyTensor:$operand, Stablehlo_IntTensor:$index,
                       I64Attr:$dim, I64Attr:$batch_dims);
  let assemblyFormat = [{
    $operand `,` $index `,` `dim` `=` $dim `,` `batch_dims` `=` $batch_dims
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 0;
}

def Stablehlo_TransposeOp : Stablehlo_ShapeOp<"transpose"> {
  let summary = "A tensor with its dimensions in another order";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
                       DenseI64ArrayAttr:$permutation);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $permutation attr-dict
    `:` functional-type(operands, results)
  }];
}
