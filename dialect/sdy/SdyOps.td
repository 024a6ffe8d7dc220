// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_SDY_SDYOPS_TD
#define MGPU_DIALECT_SDY_SDYOPS_TD

include "dialect/sdy/SdyBase.td"
include "mlir/IR/EnumAttr.td"

class Sdy_Op<string mnemonic, list<Trait> traits = []>
    : Op<Sdy_Dialect, mnemonic, traits>;

def Sdy_MeshOp : Sdy_Op<"mesh", [Symbol]> {
  let summary = "A mesh by name";
  let arguments = (ins SymbolNameAttr:$sym_name, Sdy_MeshAttr:$mesh);
  let assemblyFormat = "$sym_name `=` $mesh attr-dict";
}

def Sdy_ReturnOp : Sdy_Op<"return", [Pure, Terminator, ReturnLike]> {
  let summary = "What a computation gives";
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
}

def Sdy_ManualComputationOp : Sdy_Op<"manual_computation",
    [RecursiveMemoryEffects]> {
  let summary = "What each device does by itself";
  let description = [{
    Along `manual_axes` the body is of one device: its arguments are the shards
    of the operands, and what it returns are shards of the results. Each
    sharding names the manual axes of a dimension before others.

    Constraints: there is a sharding for each operand and result; it has as many
    dimensions; an argument of the body has the shape of a shard along the
    manual axes, and so has what the body returns.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors,
      Sdy_TensorShardingPerValueAttr:$in_shardings,
      Sdy_TensorShardingPerValueAttr:$out_shardings,
      Sdy_ManualAxesAttr:$manual_axes);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyRankedTensor>);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Sdy_NamedComputationOp
    : Sdy_Op<"named_computation", [RecursiveMemoryEffects]> {
  let summary = "A body that keeps the name of a function";
  let arguments = (ins Variadic<AnyType>:$operands, StrAttr:$name,
      OptionalAttr<Sdy_TensorShardingPerValueAttr>:$in_shardings,
      OptionalAttr<Sdy_TensorShardingPerValueAttr>:$out_shardings);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyType>);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Sdy_ConstantOp : Sdy_Op<"constant",
    [Pure, ConstantLike, AllTypesMatch<["value", "output"]>]> {
  let summary = "A tensor of known elements";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyRankedTensor:$output);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Whole tensors whose sharding changes or is asked for
//===----------------------------------------------------------------------===//

class Sdy_ReshardOpBase<string mnemonic>
    : Sdy_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
}

def Sdy_ShardingConstraintOp : Sdy_ReshardOpBase<"sharding_constraint"> {
  let summary = "Its operand, with a sharding";
  let arguments = (ins AnyRankedTensor:$input, Sdy_TensorShardingAttr:$sharding);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
}
def Sdy_ReshardOp : Sdy_ReshardOpBase<"reshard"> {
  let summary = "Its operand, moved to another sharding";
  let arguments = (ins AnyRankedTensor:$input, Sdy_TensorShardingAttr:$sharding);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
}

class Sdy_Collective<string mnemonic> : Sdy_ReshardOpBase<mnemonic>;

// A change along axes of each dimension.
class Sdy_DimCollective<string mnemonic> : Sdy_Collective<mnemonic> {
  let arguments = (ins AnyRankedTensor:$tensor, Sdy_AxisListsAttr:$axes,
                       Sdy_TensorShardingAttr:$out_sharding);
  let assemblyFormat = [{
    custom<AxisLists>($axes) $tensor `out_sharding` `` `=` `` $out_sharding
    attr-dict `:` type($result)
  }];
}
// A change along some axes.
class Sdy_AxisCollective<string mnemonic> : Sdy_Collective<mnemonic> {
  let arguments = (ins AnyRankedTensor:$tensor, Sdy_AxisListAttr:$axes,
                       OptionalAttr<StrAttr>:$reduction_kind,
                       Sdy_TensorShardingAttr:$out_sharding);
  let assemblyFormat = [{
    custom<Reduction>($reduction_kind) custom<AxisList>($axes) $tensor
    `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)
  }];
}

def Sdy_AllGatherOp : Sdy_DimCollective<"all_gather"> {
  let summary = "Joins the parts along axes";
}
def Sdy_AllSliceOp : Sdy_DimCollective<"all_slice"> {
  let summary = "Cuts along axes; nothing is sent";
}
def Sdy_ReduceScatterOp : Sdy_Collective<"reduce_scatter"> {
  let summary = "Combines along axes, and cuts";
  let arguments = (ins AnyRankedTensor:$tensor,
      OptionalAttr<StrAttr>:$reduction_kind, Sdy_AxisListsAttr:$axes,
      Sdy_TensorShardingAttr:$out_sharding);
  let assemblyFormat = [{
    custom<Reduction>($reduction_kind) custom<AxisLists>($axes) $tensor
    `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)
  }];
}
def Sdy_ShardedToUnreducedOp : Sdy_DimCollective<"sharded_to_unreduced"> {
  let summary = "Parts become terms of a sum, with zeros elsewhere";
}
def Sdy_AllReduceOp : Sdy_AxisCollective<"all_reduce"> {
  let summary = "Combines along axes";
}
def Sdy_ReplicatedToUnreducedOp
    : Sdy_AxisCollective<"replicated_to_unreduced"> {
  let summary = "Replicas become terms of a sum, all but one zero";
}
def Sdy_AllToAllOp : Sdy_Collective<"all_to_all"> {
  let summary = "Moves axes from dimensions to others";
  let arguments = (ins AnyRankedTensor:$tensor, Sdy_AllToAllParamsAttr:$params,
                       Sdy_TensorShardingAttr:$out_sharding);
  let assemblyFormat = [{
    custom<AllToAllParams>($params) $tensor
    `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)
  }];
}
def Sdy_CollectivePermuteOp : Sdy_Collective<"collective_permute"> {
  let summary = "Parts of one size go to other devices";
  let arguments = (ins AnyRankedTensor:$tensor,
                       Sdy_TensorShardingAttr:$out_sharding);
  let assemblyFormat = [{
    $tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Notes for propagation
//===----------------------------------------------------------------------===//

def Sdy_ShardingGroupOp : Sdy_Op<"sharding_group"> {
  let summary = "Values of one group have one sharding";
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$group_id);
  let assemblyFormat = [{
    $input `group_id` `` `=` `` $group_id attr-dict `:` type($input)
  }];
}

class Sdy_EdgeOp<string mnemonic>
    : Sdy_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let description = [{
    All values that flow into the edge have one sharding, which it holds.
  }];
  let arguments = (ins AnyShaped:$input,
                       OptionalAttr<Sdy_TensorShardingAttr>:$sharding);
  let results = (outs AnyShaped:$result);
  let assemblyFormat = [{
    $input (`sharding` `` `=` `` $sharding^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}
def Sdy_DataFlowEdgeOp : Sdy_EdgeOp<"data_flow_edge"> {
  let summary = "Its operand, where a region's values and its operands meet";
}
def Sdy_FuncDataFlowEdgeOp : Sdy_EdgeOp<"func_data_flow_edge"> {
  let summary = "Its operand, where a function's and its calls' values meet";
}

def Sdy_PropagationDirection
    : I32EnumAttr<"PropagationDirection", "Which way shardings go",
        [I32EnumAttrCase<"NONE", 0>, I32EnumAttrCase<"FORWARD", 1>,
         I32EnumAttrCase<"BACKWARD", 2>, I32EnumAttrCase<"BOTH", 3>]> {
  let cppNamespace = "::mgpu::sdy";
}

def Sdy_PropagationBarrierOp
    : Sdy_Op<"propagation_barrier", [Pure, SameOperandsAndResultType]> {
  let summary = "Its operand; shardings go over it in the stated direction";
  let arguments = (ins AnyRankedTensor:$input,
                       Sdy_PropagationDirection:$allowed_direction);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `allowed_direction` `` `=` `` $allowed_direction
    attr-dict `:` type($input)
  }];
}

#endif // MGPU_DIALECT_SDY_SDYOPS_TD
