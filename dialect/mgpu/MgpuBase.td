// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_MGPUBASE_TD
#define MGPU_DIALECT_MGPU_MGPUBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Mgpu_Dialect : Dialect {
  let name = "mgpu";
  let cppNamespace = "::mgpu::ir";
  let summary = "Programs for several GPUs";
  let description = [{
    The `mgpu` dialect models high-level multi-GPU computation: memory
    management, kernel launches, device synchronization and collective
    communication. It uses a stream-based async execution model.

    Program order is the meaning of a program: executing its operations one
    after the other is the reference.
    Index -1 of `mgpu.get_device` is the host.

    Memory effects are declared per operand. Streams, communicators and the
    commands queued on them are separate resources, so that an operation
    without a result (a copy, a collective, a synchronization) is never
    trivially dead.

    Where a syntax below says `custom<TwoLists>($a, $b)`, it is two bracketed
    lists, `[a0, a1], [b0, b1]`, or both of them written flat, `a0, a1, b0, b1`,
    whose first half is the first list; the same holds for the types, and either
    may be flat. The bracketed form is printed. `custom<Reduction>` and
    `custom<Sharding>` are an enumerator, bare or as a string; it is printed
    bare. `custom<Pairs>` is a list of pairs, `[[0, 1], [1, 0]]`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 0;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Mgpu_Type<string name, string typeMnemonic> : TypeDef<Mgpu_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Mgpu_DeviceType : Mgpu_Type<"Device", "device"> {
  let summary = "An opaque handle to a GPU device";
}

def Mgpu_StreamType : Mgpu_Type<"Stream", "stream"> {
  let summary = "An opaque handle to a device stream";
}

def Mgpu_CommunicatorType : Mgpu_Type<"Communicator", "communicator"> {
  let summary = "A group of devices that can be used for collective "
                "communication operations";
}

class Mgpu_Handle<TypeDef type, string what>
    : Type<type.predicate, what, type.cppType>,
      BuildableType<"$_builder.getType<" # type.cppType # ">()">;

def Mgpu_Device : Mgpu_Handle<Mgpu_DeviceType, "device handle">;
def Mgpu_Stream : Mgpu_Handle<Mgpu_StreamType, "stream handle">;
def Mgpu_Communicator
    : Mgpu_Handle<Mgpu_CommunicatorType, "communicator handle">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def Mgpu_DeviceConfigAttr : AttrDef<Mgpu_Dialect, "DeviceConfig"> {
  let mnemonic = "device_config";
  let summary = "Compile-time GPU configuration for the module (at the moment, "
                "just the number of GPUs and their IDs)";
  let description = [{
    A structured attribute recording the GPU cluster configuration known at
    compile time.

    Fields:
    - `numDevices`: The total count of GPUs available, at least one.
    - `deviceIds`: Optional explicit physical device indices for non-contiguous
      sets (e.g., [0, 2, 4, 6]): as many as `numDevices`, all different. They
      are checked and then ignored, with a warning: `--target` chooses the GPUs.

    The constraints are listed with the `mgpu.device_config` operation.

    Passes retrieve this info through the `mgpu.device_config` symbol op.

    Example — 4 contiguous GPUs:
    ```mlir
    #mgpu.device_config<numDevices = 4>
    ```
    Example — 4 GPUs with specific indices:
    ```mlir
    #mgpu.device_config<numDevices = 4, deviceIds = [0, 2, 4, 6]>
    ```
  }];
  let parameters = (ins "uint32_t":$numDevices,
      OptionalParameter<"::mlir::DenseI32ArrayAttr">:$deviceIds);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Mgpu_ReductionKind : I32EnumAttr<"ReductionKind",
    "Reduction operation for collective operations", [
      I32EnumAttrCase<"Sum", 0, "sum">,
      I32EnumAttrCase<"Prod", 1, "prod">,
      I32EnumAttrCase<"Min", 2, "min">,
      I32EnumAttrCase<"Max", 3, "max">,
    ]> {
  let cppNamespace = "::mgpu::ir";
  let genSpecializedAttr = 0;
}
def Mgpu_ReductionKindAttr
    : EnumAttr<Mgpu_Dialect, Mgpu_ReductionKind, "reduction_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Mgpu_ShardKind : I32EnumAttr<"ShardKind",
    "Describes how a buffer is distributed (sharded) across GPUs", [
      I32EnumAttrCase<"Uniform", 0, "uniform">,
      I32EnumAttrCase<"Uneven", 1, "uneven">,
      I32EnumAttrCase<"Replicate", 2, "replicate">,
    ]> {
  let cppNamespace = "::mgpu::ir";
  let genSpecializedAttr = 0;
}
def Mgpu_ShardKindAttr : EnumAttr<Mgpu_Dialect, Mgpu_ShardKind, "shard_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

// A dimension of a buffer. An index attribute has 64 bits, and text may say a
// negative number.
def Mgpu_Axis : TypedAttrBase<Index, "IntegerAttr", IndexAttr.predicate,
                              "index attribute"> {
  let returnType = "int64_t";
  let convertFromStorage = "$_self.getValue().getSExtValue()";
  let constBuilderCall = "$_builder.getIndexAttr($0)";
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

// Queues of commands: what runs on a device, and in which order.
def StreamResource : Resource<"::mgpu::ir::StreamResource">;
// The call counter of a communicator: calls on one must keep their order.
def CommunicatorResource : Resource<"::mgpu::ir::CommunicatorResource">;

def EnqueuesWork : MemWrite<StreamResource, 0, FullEffect>;
def CountsCall : MemWrite<CommunicatorResource, 0, FullEffect>;

#endif // MGPU_DIALECT_MGPU_MGPUBASE_TD
