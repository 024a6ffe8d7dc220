// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by StablehloOps.td. Calls, random numbers, tokens and tuples.

def Stablehlo_CustomCallOp : Stablehlo_Op<"custom_call", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Something that the compiler or a library knows by name";
  let arguments = (ins Variadic<AnyType>:$inputs,
      StrAttr:$call_target_name,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$has_side_effect,
      OptionalAttr<AnyAttrOf<[StrAttr, DictionaryAttr]>>:$backend_config,
      DefaultValuedOptionalAttr<Stablehlo_CustomCallApiVersionAttr,
          "::mgpu::stablehlo::CustomCallApiVersion::API_VERSION_ORIGINAL">
          :$api_version,
      OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "symbols">>
          :$called_computations,
      OptionalAttr<ArrayAttr>:$operand_layouts,
      OptionalAttr<ArrayAttr>:$result_layouts,
      OptionalAttr<TypedArrayAttrBase<Stablehlo_OutputOperandAliasAttr,
                                      "output_operand_aliases">>
          :$output_operand_aliases,
      OptionalAttr<ArrayAttr>:$result_tilings);
  let results = (outs Variadic<AnyType>);
  let assemblyFormat = [{
    custom<Target>($call_target_name) `(` $inputs `)` attr-dict
    `:` functional-type(operands, results)
  }];
}

def Stablehlo_CompositeOp : Stablehlo_Op<"composite", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "An operation by name, whose meaning is that of a function";
  let arguments = (ins Variadic<AnyType>:$inputs, StrAttr:$name,
      DefaultValuedOptionalAttr<DictionaryAttr, "{}">:$composite_attributes,
      FlatSymbolRefAttr:$decomposition,
      DefaultValuedOptionalAttr<I32Attr, "0">:$version);
  let regions = (region VariadicRegion<AnyRegion>:$composite_regions);
  let results = (outs Variadic<AnyType>);
  let assemblyFormat = [{
    $name $inputs (` ` `(` $composite_regions^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Stablehlo_OptimizationBarrierOp
    : Stablehlo_Op<"optimization_barrier", [Pure]> {
  let summary = "Its operands; nothing moves over it";
  let arguments = (ins Variadic<Stablehlo_TensorOrToken>:$operand);
  let results = (outs Variadic<Stablehlo_TensorOrToken>:$result);
  let assemblyFormat = [{
    attr-dict ($operand^ `:` custom<PairType>(type($operand), type($result))
    ):(`(` `)`)?
  }];
  let hasVerifier = 1;
}

def Stablehlo_RngOp : Stablehlo_Op<"rng"> {
  let summary = "Random numbers of a distribution";
  let arguments = (ins Stablehlo_AnyTensor:$a, Stablehlo_AnyTensor:$b,
      Stablehlo_SizeTensor:$shape,
      Stablehlo_RngDistributionAttr:$rng_distribution);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $shape `,` `distribution` `=` custom<Distribution>($rng_distribution)
    attr-dict `:` functional-type(operands, results)
  }];
}

def Stablehlo_RngBitGeneratorOp
    : Stablehlo_Op<"rng_bit_generator", [Pure]> {
  let summary = "Random bits of a state, and its next state";
  let arguments = (ins Stablehlo_AnyTensor:$initial_state,
                       Stablehlo_RngAlgorithmAttr:$rng_algorithm);
  let results = (outs Stablehlo_AnyTensor:$output_state,
                      Stablehlo_AnyTensor:$output);
  let assemblyFormat = [{
    $initial_state `,` `algorithm` `=` custom<Algorithm>($rng_algorithm)
    attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Tokens and tuples: read, so that they are refused by name
//===----------------------------------------------------------------------===//

def Stablehlo_AfterAllOp : Stablehlo_Op<"after_all", [Pure]> {
  let arguments = (ins Variadic<Stablehlo_Token>:$inputs);
  let results = (outs Stablehlo_Token:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($result)";
}
def Stablehlo_CreateTokenOp : Stablehlo_Op<"create_token", [Pure]> {
  let results = (outs Stablehlo_Token:$output);
  let assemblyFormat = "attr-dict `:` type(results)";
}
def Stablehlo_TupleOp : Stablehlo_Op<"tuple", [Pure]> {
  let arguments = (ins Variadic<AnyType>:$val);
  let results = (outs AnyTuple:$result);
  let assemblyFormat = [{
    $val attr-dict `:` custom<TupleType>(type($val), type($result))
  }];
  let hasVerifier = 1;
}
def Stablehlo_GetTupleElementOp : Stablehlo_Op<"get_tuple_element", [Pure]> {
  let arguments = (ins AnyTuple:$operand, I32Attr:$index);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $operand `[` $index `]` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}
def Stablehlo_InfeedOp : Stablehlo_Op<"infeed"> {
  let arguments = (ins Stablehlo_Token:$token,
      OptionalAttr<StrAttr>:$infeed_config,
      OptionalAttr<ArrayAttr>:$layout);
  let results = (outs Variadic<AnyType>);
}
def Stablehlo_OutfeedOp : Stablehlo_Op<"outfeed"> {
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
      Stablehlo_Token:$token,
      OptionalAttr<StrAttr>:$outfeed_config);
  let results = (outs Stablehlo_Token:$result);
}
def Stablehlo_SendOp : Stablehlo_Op<"send"> {
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$inputs,
      Stablehlo_Token:$token, Stablehlo_ChannelHandleAttr:$channel_handle,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$is_host_transfer,
      OptionalAttr<I64ElementsAttr>:$source_target_pairs);
  let results = (outs Stablehlo_Token:$result);
}
def Stablehlo_RecvOp : Stablehlo_Op<"recv"> {
  let arguments = (ins Stablehlo_Token:$token,
      Stablehlo_ChannelHandleAttr:$channel_handle,
      DefaultValuedOptionalAttr<BoolAttr, "false">:$is_host_transfer,
      OptionalAttr<I64ElementsAttr>:$source_target_pairs);
  let results = (outs Variadic<AnyType>);
}
