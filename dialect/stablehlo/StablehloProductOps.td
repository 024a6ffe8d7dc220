// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by StablehloOps.td. Matrix products, convolutions and solvers.

def Stablehlo_DotOp : Stablehlo_Op<"dot", [Pure]> {
  let summary = "The product of vectors and matrices";
  let arguments = (ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
      OptionalAttr<Stablehlo_PrecisionConfigAttr>:$precision_config);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `` custom<Precision>($precision_config) attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

// Read, and refused by name where a program is planned; they left StableHLO.
def Stablehlo_EinsumOp : Stablehlo_Op<"einsum", [Pure]> {
  let summary = "A product that a formula describes";
  let arguments = (ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
                       StrAttr:$einsum_config);
  let results = (outs Stablehlo_AnyTensor:$result);
}
def Stablehlo_UnaryEinsumOp : Stablehlo_Op<"unary_einsum", [Pure]> {
  let summary = "Sums and transpositions that a formula describes";
  let arguments = (ins Stablehlo_AnyTensor:$operand, StrAttr:$einsum_config);
  let results = (outs Stablehlo_AnyTensor:$result);
}

def Stablehlo_DotGeneralOp : Stablehlo_Op<"dot_general", [Pure]> {
  let summary = "A product over contracting dimensions, for each of a batch";
  let arguments = (ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
      Stablehlo_DotDimensionNumbersAttr:$dot_dimension_numbers,
      OptionalAttr<Stablehlo_PrecisionConfigAttr>:$precision_config,
      OptionalAttr<Stablehlo_DotAlgorithmAttr>:$algorithm);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `` custom<DotDimensions>($dot_dimension_numbers) ``
    custom<PrecisionAndAlgorithm>($precision_config, $algorithm) attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

defvar Stablehlo_ConvolutionAttributes = (ins
    OptionalAttr<DenseI64ArrayAttr>:$window_strides,
    OptionalAttr<I64ElementsAttr>:$padding,
    OptionalAttr<DenseI64ArrayAttr>:$lhs_dilation,
    OptionalAttr<DenseI64ArrayAttr>:$rhs_dilation,
    OptionalAttr<DenseBoolArrayAttr>:$window_reversal,
    Stablehlo_ConvDimensionNumbersAttr:$dimension_numbers,
    I64Attr:$feature_group_count, I64Attr:$batch_group_count,
    OptionalAttr<Stablehlo_PrecisionConfigAttr>:$precision_config);

def Stablehlo_ConvolutionOp : Stablehlo_Op<"convolution", [Pure]> {
  let summary = "The products of a kernel with each window of a tensor";
  let arguments = !con((ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs),
                       Stablehlo_ConvolutionAttributes);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    `(` operands `)` `dim_numbers` `=` custom<ConvDimensions>($dimension_numbers)
    `,` `window` `=` `{`
    custom<Window>($window_strides, $padding, $lhs_dilation, $rhs_dilation,
                   $window_reversal) `}`
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Stablehlo_DynamicConvOp : Stablehlo_Op<"dynamic_conv", [Pure]> {
  let arguments = !con((ins Stablehlo_AnyTensor:$lhs, Stablehlo_AnyTensor:$rhs,
                            Stablehlo_IntTensor:$d_padding),
                       Stablehlo_ConvolutionAttributes);
  let results = (outs Stablehlo_AnyTensor:$result);
}

def Stablehlo_CholeskyOp : Stablehlo_Op<"cholesky", [Pure]> {
  let summary = "The triangular factor of a positive definite matrix";
  let arguments = (ins Stablehlo_FloatOrComplexTensor:$a,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$lower);
  let results = (outs Stablehlo_FloatOrComplexTensor:$result);
  let assemblyFormat = [{
    $a (`,` `lower` `=` $lower^)? attr-dict
    `:` custom<SameType>(type($a), type($result))
  }];
  let hasVerifier = 1;
}

def Stablehlo_TriangularSolveOp : Stablehlo_Op<"triangular_solve", [Pure]> {
  let summary = "Solves systems of equations with a triangular matrix";
  let arguments = (ins Stablehlo_FloatOrComplexTensor:$a,
      Stablehlo_FloatOrComplexTensor:$b, BoolAttr:$left_side, BoolAttr:$lower,
      BoolAttr:$unit_diagonal, Stablehlo_TransposeAttr:$transpose_a);
  let results = (outs Stablehlo_FloatOrComplexTensor:$result);
  let hasVerifier = 1;
}

def Stablehlo_FftOp : Stablehlo_Op<"fft", [Pure]> {
  let summary = "Fourier transforms";
  let arguments = (ins Stablehlo_FloatOrComplexTensor:$operand,
      Stablehlo_FftTypeAttr:$fft_type, DenseI64ArrayAttr:$fft_length);
  let results = (outs Stablehlo_FloatOrComplexTensor:$result);
  let assemblyFormat = [{
    $operand `,` `type` `=` custom<FftKind>($fft_type)
    `,` `length` `=` $fft_length attr-dict
    `:` functional-type(operands, results)
  }];
}

class Stablehlo_BatchNormOp<string mnemonic> : Stablehlo_Op<mnemonic, [Pure]> {
  let description = [{
    Constraints: all operands have one element type; `feature_index` is a
    dimension of the operand; tensors of features have one dimension, with as
    many elements as that one.
  }];
  let hasVerifier = 1;
}

def Stablehlo_BatchNormInferenceOp
    : Stablehlo_BatchNormOp<"batch_norm_inference"> {
  let summary = "Normalises a batch by given means and variances";
  let arguments = (ins Stablehlo_FloatTensor:$operand,
      Stablehlo_FloatTensor:$scale, Stablehlo_FloatTensor:$offset,
      Stablehlo_FloatTensor:$mean, Stablehlo_FloatTensor:$variance,
      F32Attr:$epsilon, I64Attr:$feature_index);
  let results = (outs Stablehlo_FloatTensor:$result);
}

def Stablehlo_BatchNormTrainingOp
    : Stablehlo_BatchNormOp<"batch_norm_training"> {
  let summary = "Normalises a batch by its own means and variances";
  let arguments = (ins Stablehlo_FloatTensor:$operand,
      Stablehlo_FloatTensor:$scale, Stablehlo_FloatTensor:$offset,
      F32Attr:$epsilon, I64Attr:$feature_index);
  let results = (outs Stablehlo_FloatTensor:$output,
      Stablehlo_FloatTensor:$batch_mean, Stablehlo_FloatTensor:$batch_var);
}

def Stablehlo_BatchNormGradOp : Stablehlo_BatchNormOp<"batch_norm_grad"> {
  let summary = "The gradient of batch_norm_training";
  let arguments = (ins Stablehlo_FloatTensor:$operand,
      Stablehlo_FloatTensor:$scale, Stablehlo_FloatTensor:$mean,
      Stablehlo_FloatTensor:$variance, Stablehlo_FloatTensor:$grad_output,
      F32Attr:$epsilon, I64Attr:$feature_index);
  let results = (outs Stablehlo_FloatTensor:$grad_operand,
      Stablehlo_FloatTensor:$grad_scale, Stablehlo_FloatTensor:$grad_offset);
}
