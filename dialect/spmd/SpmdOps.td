// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_SPMD_SPMDOPS_TD
#define MGPU_DIALECT_SPMD_SPMDOPS_TD

include "dialect/mgpu/MgpuBase.td"
include "dialect/spmd/SpmdBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

class Spmd_Op<string mnemonic, list<Trait> traits = []>
    : Op<Spmd_Dialect, mnemonic, traits>;

def Spmd_Shaped : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef],
                            "tensor or strided memref">;

// Reads `input` and writes `init`, which is the result where it is a tensor.
class Spmd_DestinationOp<string mnemonic>
    : Spmd_Op<mnemonic, [DestinationStyleOpInterface,
                         DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let hasVerifier = 1;
  code declareInits = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
  let extraClassDeclaration = declareInits;
  let extraClassDefinition = [{
    void $cppClass::getEffects(::llvm::SmallVectorImpl<
        ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>>
        &effects) {
      ::mgpu::spmd::addEffects(*this, effects);
    }
  }];
}

// A collective: each member of a group calls it.
class Spmd_CollectiveOp<string mnemonic> : Spmd_DestinationOp<mnemonic>;

//===----------------------------------------------------------------------===//
// The whole and its shards
//===----------------------------------------------------------------------===//

def Spmd_DeviceIndexOp : Spmd_Op<"device_index", [Pure]> {
  let summary = "The number of the device that runs this";
  let results = (outs Index:$index);
  let assemblyFormat = "attr-dict `:` type($index)";
}

def Spmd_FullToShardOp : Spmd_Op<"full_to_shard", [Pure]> {
  let summary = "This device's shard of an argument";
  let description = [{
    `full` is an argument of the entry function. Its `spmd.layout` says which
    part of it the device holds; without one, each device holds all of it.

    Constraints, by the label that ends the message about each:
    - (full_to_shard_c1) `full` is an argument of a function;
    - (full_to_shard_c2) the result has the shape of a shard under the layout of
      the argument;
    - (full_to_shard_c3) both have the same element type.
  }];
  let arguments = (ins AnyRankedTensor:$full);
  let results = (outs AnyRankedTensor:$shard);
  let assemblyFormat = "$full attr-dict `:` type($full) `to` type($shard)";
  let hasVerifier = 1;
}

def Spmd_ShardToFullOp : Spmd_Op<"shard_to_full", [Pure]> {
  let summary = "A result made of the devices' shards";
  let description = [{
    `full` is returned by the entry function. The `spmd.layout` of that result
    says which part of it each device holds; without one, each device holds all
    of it. Of replicas the one on the device of the lowest number is taken.

    Constraints, by the label that ends the message about each:
    - (shard_to_full_c1) the result is returned by a function, and not used
      otherwise;
    - (shard_to_full_c2) `shard` has the shape of a shard under the layout of
      the function's result;
    - (shard_to_full_c3) both have the same element type.
  }];
  let arguments = (ins AnyRankedTensor:$shard);
  let results = (outs AnyRankedTensor:$full);
  let assemblyFormat = "$shard attr-dict `:` type($shard) `to` type($full)";
  let hasVerifier = 1;
}

def Spmd_LayoutConstraintOp
    : Spmd_Op<"layout_constraint", [Pure, SameOperandsAndResultType]> {
  let summary = "A whole tensor in the layout that the program asks for";
  let description = [{
    A function with layout constraints computes with whole tensors, as if there
    were one device, and the layouts say how devices share the work. The pass
    `spmd-partition-tensors` finds a layout for each other value, and makes the
    program of one device of it. Arguments and results may have an
    `spmd.layout`. Collectives and device numbers may be there: each device
    computes with whole tensors what comes of them, up to a collective that
    gives all devices the same.
    Dimensions that `open` lists may be cut further. `priorities` has a number
    for each dimension: how the dimension is cut is told to other values where
    all that has a lower number has been told to all.

    Constraints, by the label that ends the message about each:
    - (layout_constraint_c1) the tensor has a static shape, `split` has a list
      for each of its dimensions, and each dimension has at least as many
      elements as parts; `open` lists dimensions of it, and `priorities` has
      one for each that is not negative.

    Example: the rows of a product are on both devices in halves.
    ```mlir
    %y = spmd.layout_constraint %x, <mesh = [2], split = [[0], []]>
        : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Spmd_LayoutAttr:$layout,
                       OptionalAttr<DenseI64ArrayAttr>:$open,
                       OptionalAttr<DenseI64ArrayAttr>:$priorities);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $tensor `,` $layout (`open` $open^)? (`priorities` $priorities^)?
    attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Spmd_SameLayoutOp : Spmd_Op<"same_layout"> {
  let summary = "Whole tensors that have one layout";
  let description = [{
    In a function with layout constraints, all tensors of one group get the same
    layout.

    Constraints, by the label that ends the message about each:
    - (same_layout_c1) tensors of a group have the same static shape.

    Example:
    ```mlir
    spmd.same_layout %x group = 0 : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$group);
  let assemblyFormat = "$tensor `group` `=` $group attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Spmd_DistributeOp : Spmd_DestinationOp<"distribute"> {
  let summary = "Copy each device's part of a host buffer to the device";
  let description = [{
    What `spmd.full_to_shard` becomes before bufferization: `input` lies on the
    host, `init` on each device, and `layout` says which part it gets.

    Constraints, by the label that ends the message about each:
    - (distribute_c1) `init` has the shape of a shard of `input`;
    - (distribute_c2) both have the same element type.
  }];
  let arguments = (ins Spmd_Shaped:$input, Spmd_Shaped:$init,
                       Spmd_LayoutAttr:$layout);
  let assemblyFormat = [{
    $layout `ins` `(` $input `:` type($input) `)` `outs` `(` $init `:` type($init) `)`
    attr-dict (`->` type($result)^)?
  }];
}

def Spmd_CollectOp : Spmd_DestinationOp<"collect"> {
  let summary = "Copy each device's part to a host buffer";
  let description = [{
    What `spmd.shard_to_full` becomes before bufferization: `input` lies on each
    device, `init` on the host.

    Constraints, by the label that ends the message about each:
    - (collect_c1) `input` has the shape of a shard of `init`;
    - (collect_c2) both have the same element type.
  }];
  let arguments = (ins Spmd_Shaped:$input, Spmd_Shaped:$init,
                       Spmd_LayoutAttr:$layout);
  let assemblyFormat = [{
    $layout `ins` `(` $input `:` type($input) `)` `outs` `(` $init `:` type($init) `)`
    attr-dict (`->` type($result)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Some of the devices
//===----------------------------------------------------------------------===//

def Spmd_OnOp : Spmd_Op<"on", [SingleBlockImplicitTerminator<"YieldOp">,
    NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "Code that some of the devices run";
  let description = [{
    Devices `first` to `end`, without `end`, run the body; all others skip it.
    In the body, a collective without `groups` is of these devices, and
    `groups` name no other. What the body yields is on these devices alone: it
    may be used in another `spmd.on`, in a `spmd.move`, and in results of the
    function, where only they run that or hold that.

    Constraints, by the label that ends the message about each:
    - (on_c1) there is a device in the range;
    - (on_c2) all of them run the `spmd.on` around this one;
    - (on_c3) the body yields values of the types of the results.

    Example: two devices double a tensor that two others read.
    ```mlir
    %y = spmd.on 2 to 4 -> tensor<8xf32> {
      %double = arith.addf %x, %x : tensor<8xf32>
      spmd.yield %double : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$first, I64Attr:$end);
  let results = (outs Variadic<Spmd_Shaped>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $first `to` $end (`->` type($outputs)^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  /// `body` makes what the body has, and its values.
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types,
      "int64_t":$first, "int64_t":$end,
      "::llvm::function_ref<::mlir::ValueRange(::mlir::OpBuilder &)>":$body)>];
  let extraClassDeclaration = [{
    YieldOp getYield();
  }];
}

def Spmd_YieldOp : Spmd_Op<"yield", [Pure, Terminator,
                                     HasParent<"OnOp">]> {
  let summary = "What a body gives";
  let arguments = (ins Variadic<Spmd_Shaped>:$values);
  let builders = [OpBuilder<(ins), [{ /* of a body without results */ }]>];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Spmd_CallOp : Spmd_Op<"call",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function on whole tensors, run by some of the devices";
  let description = [{
    The callee computes with whole tensors, and its layout constraints, if any,
    are for a mesh that begins at device 0. The devices of the layouts run it,
    as devices 0 to n. An operand is a device's part, under its layout, of an
    argument; a result is a device's part of what the callee returns. The pass
    `spmd-inline-calls` puts the callee, made for one device, into an `spmd.on`.

    Constraints, by the label that ends the message about each:
    - (call_c1) there is a layout for each operand and each result, and at least
      one; all have `first`, and the same devices;
    - (call_c2) the callee is a function of the module;
    - (call_c3) operands and results are shards of its arguments and results.

    Example: devices 4 and 5 have half of the rows each.
    ```mlir
    #rows = #spmd.layout<mesh = [2], first = 4, split = [[0], []]>
    func.func private @square(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %y = arith.mulf %x, %x : tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }
    func.func @f(%mine: tensor<4x16xf32>) {
      %y = spmd.call @square(%mine) in [#rows] out [#rows]
          : (tensor<4x16xf32>) -> tensor<4x16xf32>
      return
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
      Variadic<AnyRankedTensor>:$inputs,
      TypedArrayAttrBase<Spmd_LayoutAttr, "layouts">:$in_layouts,
      TypedArrayAttrBase<Spmd_LayoutAttr, "layouts">:$out_layouts);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` `in` $in_layouts `out` $out_layouts attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// A layout of the devices that run it.
    LayoutAttr getAnyLayout() {
      return ::llvm::cast<LayoutAttr>(
          (getInLayouts().empty() ? getOutLayouts() : getInLayouts())[0]);
    }
  }];
}

def Spmd_AttentionOp : Spmd_Op<"attention", [DestinationStyleOpInterface,
    SingleBlock, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "softmax(score(Q K^T)) V in one launch";
  let description = [{
    What `spmd-name-attention` makes of the operations that compute it. `inputs`
    are Q, K and V, then what the body reads, whose elements `extras` say by
    the indices of `of`. The body takes the product of a query and a key, an
    element of each further input, and the indices of the batch, the query and
    the key; it gives the score. A query whose scores are all -inf gets 0.

    Constraints, by the label that ends the message about each:
    - (attention_c1) `inputs` are Q, K, V and one for each map of `extras`, and
      each map has the indices of `of` and a result for each dimension;
    - (attention_c2) the body takes and gives such numbers; products and scores
      are floats;
    - (attention_c3) sizes are static, and elements that the maps name exist.
  }];
  let arguments = (ins Mgpu_AttentionAttr:$of, AffineMapArrayAttr:$extras,
      Variadic<Spmd_Shaped>:$inputs, Spmd_Shaped:$init);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $of $extras `ins` `(` $inputs `:` type($inputs) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict-with-keyword
    $body (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
  let extraClassDefinition = [{
    void $cppClass::getEffects(::llvm::SmallVectorImpl<
        ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>>
        &effects) {
      ::mgpu::spmd::addEffects(*this, effects);
    }
  }];
}

def Spmd_ScoreOp : Spmd_Op<"score", [Pure, Terminator,
                                     HasParent<"AttentionOp">]> {
  let summary = "The score that the body of an attention gives";
  let arguments = (ins AnyFloat:$score);
  let assemblyFormat = "$score attr-dict `:` type($score)";
}

def Spmd_CustomCallOp : Spmd_Op<"custom_call", [AttrSizedOperandSegments,
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A computation that is known by name";
  let description = [{
    Each device that runs it reads all of `inputs` and writes all of `inits`;
    of an init that `kept` lists it may read what was there, too. It becomes an
    `mgpu.launch` of CUDA C++ where `source` names a file: the pointers of the
    inputs, then those of the inits, are the arguments of `entry`. A thread is
    launched for each element of the largest init, in blocks of 256. Without
    `source` nothing but what it touches is known: it can be planned, and runs
    only where it is `registered`, by a function of the process.
    Calls of one name with another `config` are others; one that is `effectful`
    stays, whoever uses what it gives, and no other stands for it.

    Constraints, by the label that ends the message about each:
    - (custom_call_c1) there is an init;
    - (custom_call_c2) `source` and `entry` come together;
    - (custom_call_c3) `kept` lists positions of inits, each once;
    - (custom_call_c4) sizes are static;
    - (custom_call_c5) `registered` comes without `source`.

    Example:
    ```mlir
    %y = spmd.custom_call "scale" from "scale.cu" entry "scale"
        ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins StrAttr:$target, Variadic<Spmd_Shaped>:$inputs,
      Variadic<Spmd_Shaped>:$inits, OptionalAttr<StrAttr>:$source,
      OptionalAttr<StrAttr>:$entry, OptionalAttr<DenseI64ArrayAttr>:$kept,
      OptionalAttr<AnyAttr>:$config, UnitAttr:$effectful,
      UnitAttr:$registered);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $target (`registered` $registered^)? (`from` $source^)? (`entry` $entry^)? (`kept` $kept^)?
    (`config` $config^)? (`effectful` $effectful^)?
    `ins` `(` ($inputs^ `:` type($inputs))? `)`
    `outs` `(` ($inits^ `:` type($inits))? `)`
    attr-dict (`->` type($outputs)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitsMutable(); }
    /// Whether it may read what init `number` holds.
    bool keeps(unsigned number) {
      return getKept() && ::llvm::is_contained(*getKept(), int64_t(number));
    }
  }];
  let extraClassDefinition = [{
    void $cppClass::getEffects(::llvm::SmallVectorImpl<
        ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>>
        &effects) {
      ::mgpu::spmd::addEffects(*this, effects);
      if (getEffectful())
        effects.emplace_back(::mlir::MemoryEffects::Write::get());
    }
  }];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

def Spmd_AllReduceOp : Spmd_CollectiveOp<"all_reduce"> {
  let summary = "Combine the members' tensors, element by element";
  let description = [{
    Every member gets the same result. `input` and `init` may be one tensor.

    Constraints, by the label that ends the message about each:
    - (all_reduce_c1) `input` and `init` have the same shape;
    - (all_reduce_c2) both have the same element type;
    - (all_reduce_c3) there is a group; all have the same size, and no device
      is in two.
  }];
  let arguments = (ins Mgpu_ReductionKindAttr:$kind, Spmd_Shaped:$input,
                       Spmd_Shaped:$init, OptionalAttr<ArrayAttr>:$groups);
  let assemblyFormat = [{
    custom<Reduction>($kind) `ins` `(` $input `:` type($input) `)`
    `outs` `(` $init `:` type($init) `)` (`groups` custom<Groups>($groups)^)?
    attr-dict (`->` type($result)^)?
  }];
}

def Spmd_AllGatherOp : Spmd_CollectiveOp<"all_gather"> {
  let summary = "Concatenate the members' tensors along a dimension";
  let description = [{
    Every member gets all of them, in rank order.

    Constraints, by the label that ends the message about each:
    - (all_gather_c1) `axis` is a dimension of `input`;
    - (all_gather_c2) `init` is `input` as many times along `axis` as a group
      has members, and has its sizes otherwise;
    - (all_gather_c3) both have the same element type;
    - (all_gather_c4) there is a group; all have the same size, and no device
      is in two.
  }];
  let arguments = (ins Spmd_Shaped:$input, Spmd_Shaped:$init,
                       I64Attr:$axis, OptionalAttr<ArrayAttr>:$groups);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)` `outs` `(` $init `:` type($init) `)`
    `axis` `=` $axis (`groups` custom<Groups>($groups)^)?
    attr-dict (`->` type($result)^)?
  }];
}

def Spmd_ReduceScatterOp : Spmd_CollectiveOp<"reduce_scatter"> {
  let summary = "Combine the members' tensors, and give each member one part";
  let description = [{
    The combined tensor is cut along `axis` into as many equal parts as the
    group has members; the member of rank r gets part r.

    Constraints, by the label that ends the message about each:
    - (reduce_scatter_c1) `axis` is a dimension of `input`;
    - (reduce_scatter_c2) `input` is `init` as many times along `axis` as a
      group has members, and has its sizes otherwise;
    - (reduce_scatter_c3) both have the same element type;
    - (reduce_scatter_c4) there is a group; all have the same size, and no device
      is in two.
  }];
  let arguments = (ins Mgpu_ReductionKindAttr:$kind, Spmd_Shaped:$input,
                       Spmd_Shaped:$init, I64Attr:$axis,
                       OptionalAttr<ArrayAttr>:$groups);
  let assemblyFormat = [{
    custom<Reduction>($kind) `ins` `(` $input `:` type($input) `)`
    `outs` `(` $init `:` type($init) `)`
    `axis` `=` $axis (`groups` custom<Groups>($groups)^)?
    attr-dict (`->` type($result)^)?
  }];
}

def Spmd_AllToAllOp : Spmd_CollectiveOp<"all_to_all"> {
  let summary = "Each member sends a part to each member";
  let description = [{
    Each member cuts `input` along `split` into as many equal parts as the group
    has members, and sends part r to the member of rank r. What a member gets it
    concatenates along `concat`, in rank order.

    Constraints, by the label that ends the message about each:
    - (all_to_all_c1) `split` and `concat` are dimensions of `input`;
    - (all_to_all_c2) dimension `split` is divisible by the size of a group;
    - (all_to_all_c3) `init` is `input` with dimension `split` divided, and
      dimension `concat` multiplied, by the size of a group;
    - (all_to_all_c4) both have the same element type;
    - (all_to_all_c5) there is a group; all have the same size, and no device
      is in two.
  }];
  let arguments = (ins Spmd_Shaped:$input, Spmd_Shaped:$init,
                       I64Attr:$split, I64Attr:$concat,
                       OptionalAttr<ArrayAttr>:$groups);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)` `outs` `(` $init `:` type($init) `)`
    `split` `=` $split `concat` `=` $concat (`groups` custom<Groups>($groups)^)?
    attr-dict (`->` type($result)^)?
  }];
}

def Spmd_BroadcastOp : Spmd_CollectiveOp<"broadcast"> {
  let summary = "Every member gets one member's tensor";
  let description = [{
    Constraints, by the label that ends the message about each:
    - (broadcast_c1) `root` is a rank of a group;
    - (broadcast_c2) `input` and `init` have the same shape;
    - (broadcast_c3) both have the same element type;
    - (broadcast_c4) there is a group; all have the same size, and no device
      is in two.
  }];
  let arguments = (ins Spmd_Shaped:$input, Spmd_Shaped:$init, I64Attr:$root,
                       OptionalAttr<ArrayAttr>:$groups);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)` `outs` `(` $init `:` type($init) `)`
    `root` `=` $root (`groups` custom<Groups>($groups)^)?
    attr-dict (`->` type($result)^)?
  }];
}

def Spmd_PermuteOp : Spmd_CollectiveOp<"permute"> {
  let summary = "Members send their tensors to others";
  let description = [{
    `pairs` are devices, `[source, target]`. A device that is the target of none
    gets zeros.

    Constraints, by the label that ends the message about each:
    - (permute_c1) each pair has two devices;
    - (permute_c2) no device is the source of two pairs;
    - (permute_c3) no device is the target of two pairs;
    - (permute_c4) `input` and `init` have the same shape;
    - (permute_c5) both have the same element type.
  }];
  let arguments = (ins Spmd_Shaped:$input, Spmd_Shaped:$init,
                       ArrayAttr:$pairs);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)` `outs` `(` $init `:` type($init) `)`
    `pairs` custom<Groups>($pairs) attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = declareInits;
}

def Spmd_MoveOp : Spmd_DestinationOp<"move"> {
  let summary = "Give each device its part under another layout";
  let description = [{
    `input` is a device's part, under `from`, of a tensor of shape `full`, and
    `init` gets its part under `to`. Parts may have different sizes, and the
    layouts may be of different devices. Devices copy from each other what they
    lack; what a device has it copies itself.

    Constraints, by the label that ends the message about each:
    - (move_c1) both layouts are for all devices, and have the same mesh, or
      both have `first`;
    - (move_c2) `input` has the shape of a shard under `from`;
    - (move_c3) `init` has the shape of a shard under `to`;
    - (move_c4) both have the same element type.
  }];
  let arguments = (ins Spmd_Shaped:$input, Spmd_Shaped:$init,
                       Spmd_LayoutAttr:$from, Spmd_LayoutAttr:$to,
                       DenseI64ArrayAttr:$full);
  let assemblyFormat = [{
    `from` $from `to` $to `full` `=` $full `ins` `(` $input `:` type($input) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
}

#endif // MGPU_DIALECT_SPMD_SPMDOPS_TD
