// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by StablehloOps.td. Operations between devices. They are not pure:
// each device of a group must call them, in one order.

class Stablehlo_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Stablehlo_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Stablehlo_AllGatherOp : Stablehlo_CollectiveOp<"all_gather"> {
  let summary = "The operands of a group's members, behind each other";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$operands,
      I64Attr:$all_gather_dim, Stablehlo_ReplicaGroupsAttr:$replica_groups,
      OptionalAttr<Stablehlo_ChannelHandleAttr>:$channel_handle,
      UnitAttr:$use_global_device_ids);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_AllReduceOp : Stablehlo_CollectiveOp<"all_reduce"> {
  let summary = "The operands of a group's members, combined by a region";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$operands,
      Stablehlo_ReplicaGroupsAttr:$replica_groups,
      OptionalAttr<Stablehlo_ChannelHandleAttr>:$channel_handle,
      UnitAttr:$use_global_device_ids);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_AllToAllOp : Stablehlo_CollectiveOp<"all_to_all"> {
  let summary = "Each member of a group gets a part of each operand";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$operands,
      I64Attr:$split_dimension, I64Attr:$concat_dimension, I64Attr:$split_count,
      Stablehlo_ReplicaGroupsAttr:$replica_groups,
      OptionalAttr<Stablehlo_ChannelHandleAttr>:$channel_handle);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_CollectiveBroadcastOp
    : Stablehlo_CollectiveOp<"collective_broadcast"> {
  let summary = "The operand of a group's first member; zeros in no group";
  let description = [{
    With `has_dynamic_root` the last operand says for each other one which
    member of a group gives it.
  }];
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$operands,
      Stablehlo_ReplicaGroupsAttr:$replica_groups,
      OptionalAttr<Stablehlo_ChannelHandleAttr>:$channel_handle,
      UnitAttr:$has_dynamic_root);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_CollectivePermuteOp
    : Stablehlo_CollectiveOp<"collective_permute"> {
  let summary = "The operand of the device that a pair names; else zeros";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$operands,
      I64ElementsAttr:$source_target_pairs,
      OptionalAttr<Stablehlo_ChannelHandleAttr>:$channel_handle);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_ReduceScatterOp : Stablehlo_CollectiveOp<"reduce_scatter"> {
  let summary = "Each member's part of the combined operands";
  let arguments = (ins Stablehlo_AnyTensor:$operand, I64Attr:$scatter_dimension,
      Stablehlo_ReplicaGroupsAttr:$replica_groups,
      OptionalAttr<Stablehlo_ChannelHandleAttr>:$channel_handle,
      UnitAttr:$use_global_device_ids);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs Stablehlo_AnyTensor:$result);
}

// Read, and refused by name where a program is planned.
def Stablehlo_CollectiveReduceOp : Stablehlo_Op<"collective_reduce"> {
  let summary = "The combined operands, at one member of each group";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$operands,
      Stablehlo_ReplicaGroupsAttr:$replica_groups,
      OptionalAttr<Stablehlo_ChannelHandleAttr>:$channel_handle,
      UnitAttr:$use_global_device_ids, UnitAttr:$has_dynamic_root);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs Variadic<Stablehlo_AnyTensor>);
}

def Stablehlo_CrossReplicaSumOp : Stablehlo_Op<"cross-replica-sum"> {
  let summary = "An all_reduce that adds; it left StableHLO";
  let arguments = (ins Stablehlo_AnyTensor:$operand,
                       I64ElementsAttr:$replica_groups);
  let results = (outs Stablehlo_AnyTensor:$result);
}

def Stablehlo_AsyncStartOp : Stablehlo_Op<"async_start", [IsolatedFromAbove]> {
  let summary = "Starts the operation of a region";
  let arguments = (ins Variadic<Stablehlo_AnyTensor>:$operands);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Stablehlo_Future:$result);
}

def Stablehlo_AsyncDoneOp : Stablehlo_Op<"async_done"> {
  let summary = "Waits for an operation that was started";
  let arguments = (ins Stablehlo_Future:$operand);
  let results = (outs Stablehlo_AnyTensor:$result);
}

class Stablehlo_IdOp<string mnemonic> : Stablehlo_Op<mnemonic, [Pure]> {
  let results = (outs RankedTensorOf<[UI32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Stablehlo_PartitionIdOp : Stablehlo_IdOp<"partition_id">;
def Stablehlo_ReplicaIdOp : Stablehlo_IdOp<"replica_id">;
