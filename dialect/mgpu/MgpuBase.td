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

    Attributes of operations without a type of the dialect are these. Of a
    text, those of users are read; the others are dropped.

    | attribute | on | set by | read by |
    |---|---|---|---|
    | `mgpu.name` | operations, arguments, results | users, front ends | import, messages |
    | `mgpu.role` | arguments | users, front ends | import |
    | `mgpu.expect`, `mgpu.expected` | results | `convert-stablehlo-to-linalg` | import |
    | `mgpu.fragment` | computations | `convert-spmd-to-mgpu` | `mgpu-fuse-launches` |
    | `mgpu.launch_group` | computations | `mgpu-fuse-launches` | conversions of `linalg` |
    | `mgpu.dynamic_shared_bytes` | a kernel's function | import | kernels |
    | `mgpu.subgroup` | operations of a kernel | kernels/lower | kernels |

    Those with a type are verified: `mgpu.product`, `mgpu.attention`,
    `mgpu.sparse`, `mgpu.cluster` and `mgpu.mark`, which is a set of these:

    | mark | on | set by | read by |
    |---|---|---|---|
    | `product_loop` | the loop over k of a product among other work | `convert-linalg-points-to-mgpu` | import, kernels/cuda |
    | `global_x`, `global_y`, `global_z` | ids of the threads around it | the same | the same |
    | `instruction`, `meaning`, `warpgroup_product` | operations for sm_90 (Instructions.h) | dialect/conversion/gpu | import, kernels |
    | `awaits_others` | launches whose blocks must run at the same time | dialect/conversion/gpu | import |
    | `device_only` | an `mgpu.alloc` that host code does not reach | dialect/conversion/gpu | `mgpu-place-host-memory` |
    | `head` | device handles made at a function's head | dialect/conversion/gpu | the same |
    | `sparse_operand` | notes of a sparse product's memory | dialect/conversion/gpu | the same |
    | `forwarded` | an `mgpu.alloc` that a launch loads no more from | conversions of `linalg` | `mgpu-remove-unread-buffers` |
    | `in_order` | a function whose launches keep their order | `mpmd-schedule` | import |
    | `one_device` | a function or communicator of which device 0 alone is written | import | `convert-spmd-to-mgpu`, import |
    | `whole_loop` | loops unrolled whole | kernels/cuda | the same |
    | `sentence` | a `cf.assert` whose message is a sentence | kernels/lower | kernels/host |
    | `workgroup` | an alloca in workgroup memory | kernels/lower | the same |
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

def Mgpu_MatrixAttr : AttrDef<Mgpu_Dialect, "Matrix"> {
  let mnemonic = "matrix";
  let summary = "A matrix of a product in a kernel, or a batch of matrices";
  let description = [{
    Which argument of the kernel it is, and where its elements are: offset and
    strides are in elements.
  }];
  let parameters = (ins "uint32_t":$argument, "int64_t":$rows,
      "int64_t":$columns, "int64_t":$rowStride, "int64_t":$columnStride,
      DefaultValuedParameter<"int64_t", "1">:$batch,
      DefaultValuedParameter<"int64_t", "0">:$batchStride,
      DefaultValuedParameter<"int64_t", "0">:$offset);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// The matrix by columns.
    MatrixAttr turned() const;
  }];
}

def Mgpu_ProductAttr : AttrDef<Mgpu_Dialect, "Product"> {
  let mnemonic = "product";
  let summary = "The matrix product that a launch or a kernel computes";
  let description = [{
    C += A * B, or with `overwrites` C = A * B, `batch` times: A is m x k, B is
    k x n and C is m x n, of elements `a`, `b` and `c`. With `turned` B is
    stored as its transpose, n x k. The body says the same; targets may compute
    the product in another way.

    The launch that `linalg` became has it as `mgpu.product`. Its `args` are A
    and B, then C where the launch computes nothing else. The kernel made of
    it has `matrices` as well: A, B, and C where the sums go to C as they are. They are
    behind a colon: `c = f32 : [<argument = 0, ...>, <...>]`.

    ```mlir
    #mgpu.product<m = 64, n = 32, k = 16, a = f16, b = f16, c = f32>
    ```

    Sizes are from 1 to 2^30, so that an index of an element is a number of 64
    bits, and each matrix has the sizes and the batch that the product says.
  }];
  let parameters = (ins "int64_t":$m, "int64_t":$n, "int64_t":$k,
      "::mlir::Type":$a, "::mlir::Type":$b, "::mlir::Type":$c,
      DefaultValuedParameter<"int64_t", "1">:$batch,
      DefaultValuedParameter<"bool", "false">:$turned,
      DefaultValuedParameter<"bool", "false">:$overwrites,
      OptionalArrayRefParameter<"MatrixAttr">:$matrices);
  let assemblyFormat = "`<` struct($m, $n, $k, $a, $b, $c, $batch, $turned, $overwrites) (`:` `[` $matrices^ `]`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether C is an argument of the kernel, which has `matrices`.
    bool hasC() const { return getMatrices().size() == 3; }
    MatrixAttr matrixA() const { return getMatrices()[0]; }
    MatrixAttr matrixB() const { return getMatrices()[1]; }
    MatrixAttr matrixC() const { return getMatrices()[2]; }
    /// B as its rows lie in memory.
    MatrixAttr storedB() const {
      return getTurned() ? matrixB().turned() : matrixB();
    }
  }];
}

def Mgpu_SparseProductAttr : AttrDef<Mgpu_Dialect, "SparseProduct"> {
  let mnemonic = "sparse_product";
  let summary = "The product with a sparse matrix that a launch computes";
  let description = [{
    For a library that can compute it, with the fields of the same names of
    kernels/abi/MatrixProduct.h. The launch's `args` are positions, indices and
    values of the matrix, whose rows lie in order, and both dense operands; a
    kernel's `operands` are the positions of its arguments that these are.
  }];
  let parameters = (ins "uint32_t":$kind, "int64_t":$rows, "int64_t":$columns,
      "int64_t":$entries, DefaultValuedParameter<"int64_t", "1">:$breadth,
      DefaultValuedParameter<"bool", "false">:$isFirstTurned,
      DefaultValuedParameter<"bool", "false">:$isSecondTurned,
      OptionalArrayRefParameter<"int64_t">:$operands);
  let assemblyFormat = "`<` struct($kind, $rows, $columns, $entries, $breadth, $isFirstTurned, $isSecondTurned) (`:` `[` $operands^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def Mgpu_AttentionAttr : AttrDef<Mgpu_Dialect, "Attention"> {
  let mnemonic = "attention";
  let summary = "The attention that a launch or a kernel computes";
  let description = [{
    softmax(score(Q K^T)) V over the keys, for each query of each of a batch.
    The sizes are those of the batch's dimensions, then the numbers of queries,
    of keys, of elements of a head, and of elements of a value. `maps` say where
    an element of Q, K, V and the result lies in its buffer: each is linear in
    (batch..., query, key, element of the head, element of the value). A batch
    dimension that a map leaves out is one that shares what lies there, as
    query heads share a key head.

    The launch that `spmd.attention` became has it as `mgpu.attention`; its
    `args` are the four buffers. A kernel's `operands` are the positions of its
    arguments that these are. The body says the same; targets may compute the
    attention in another way, within the bound of docs/numerics.md.

    ```mlir
    #mgpu.attention<[2, 8], queries = 64, keys = 64, head = 16, value = 16 :
        [affine_map<(b, h, q, k, d, v) -> (b, h, q, d)>, ...]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$batch,
      "int64_t":$queries, "int64_t":$keys, "int64_t":$head, "int64_t":$value,
      "::mlir::ArrayAttr":$maps, OptionalArrayRefParameter<"int64_t">:$operands);
  let assemblyFormat = "`<` `[` $batch `]` `,` struct($queries, $keys, $head, $value) `:` $maps (`at` `[` $operands^ `]`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// How many queries there are of each number: the batch's sizes multiplied.
    int64_t getBatchSize() const;
    ::mlir::AffineMap getMap(unsigned operand) const {
      return ::llvm::cast<::mlir::AffineMapAttr>(getMaps()[operand]).getValue();
    }
  }];
}

def Mgpu_ClusterAttr : AttrDef<Mgpu_Dialect, "Cluster"> {
  let mnemonic = "cluster";
  let summary = "How many blocks of a launch form a cluster, along x, y and z";
  let parameters = (ins "uint32_t":$x, "uint32_t":$y, "uint32_t":$z);
  let assemblyFormat = "`<` $x `,` $y `,` $z `>`";
}

def Mgpu_Mark : I32BitEnumAttr<"Mark", "What passes note of an operation", [
      I32BitEnumAttrCaseBit<"ProductLoop", 0, "product_loop">,
      I32BitEnumAttrCaseBit<"GlobalX", 1, "global_x">,
      I32BitEnumAttrCaseBit<"GlobalY", 2, "global_y">,
      I32BitEnumAttrCaseBit<"GlobalZ", 3, "global_z">,
      I32BitEnumAttrCaseBit<"Instruction", 4, "instruction">,
      I32BitEnumAttrCaseBit<"Meaning", 5, "meaning">,
      I32BitEnumAttrCaseBit<"WarpgroupProduct", 6, "warpgroup_product">,
      I32BitEnumAttrCaseBit<"WholeLoop", 7, "whole_loop">,
      I32BitEnumAttrCaseBit<"Sentence", 8, "sentence">,
      I32BitEnumAttrCaseBit<"Forwarded", 9, "forwarded">,
      I32BitEnumAttrCaseBit<"DeviceOnly", 10, "device_only">,
      I32BitEnumAttrCaseBit<"Head", 11, "head">,
      I32BitEnumAttrCaseBit<"InOrder", 12, "in_order">,
      I32BitEnumAttrCaseBit<"OneDevice", 13, "one_device">,
      I32BitEnumAttrCaseBit<"AwaitsOthers", 14, "awaits_others">,
      I32BitEnumAttrCaseBit<"Workgroup", 15, "workgroup">,
      I32BitEnumAttrCaseBit<"SparseOperand", 16, "sparse_operand">,
    ]> {
  let cppNamespace = "::mgpu::ir";
  let genSpecializedAttr = 0;
}
def Mgpu_MarkAttr : EnumAttr<Mgpu_Dialect, Mgpu_Mark, "mark"> {
  let assemblyFormat = "`<` $value `>`";
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
