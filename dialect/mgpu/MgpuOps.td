// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_MGPUOPS_TD
#define MGPU_DIALECT_MGPU_MGPUOPS_TD

include "dialect/mgpu/MgpuBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Mgpu_Op<string mnemonic, list<Trait> traits = []>
    : Op<Mgpu_Dialect, mnemonic, traits>;

// An operation with results gives them names an error message can use.
class Mgpu_NamedOp<string mnemonic, list<Trait> traits = []>
    : Mgpu_Op<mnemonic, traits # [
          DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]>;

// Enqueues commands: the optional stream is an operand, the effect the op's.
class Mgpu_CommandOp<string mnemonic, list<Trait> traits = []>
    : Mgpu_Op<mnemonic, traits # [MemoryEffects<[EnqueuesWork]>]>;

// A device's call on a communicator.
class Mgpu_CollectiveOp<string mnemonic>
    : Mgpu_CommandOp<mnemonic> {
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Configuration and devices
//===----------------------------------------------------------------------===//

// Not Pure, as documents of the dialect have it: nothing uses its symbol, and
// passes such as --remove-dead-values would take the configuration away.
def Mgpu_DeviceConfigOp : Mgpu_Op<"device_config",
    [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "Symbolic declaration of the cluster configuration";
  let description = [{
    Wraps `DeviceConfigAttr` to allow passes to do
    `SymbolTable` lookups. This op is just metadata.

    Only one `mgpu.device_config` op may appear per module.

    Example — 4 contiguous GPUs:
    ```mlir
    mgpu.device_config @config #mgpu.device_config<numDevices = 4>
    ```
    Example — 4 GPUs with specific indices:
    ```mlir
    mgpu.device_config @config
        #mgpu.device_config<numDevices = 4, deviceIds = [0, 2, 4, 6]>
    ```

    Constraints, by the label that ends the message about each:
    - (device_config_c1) `numDevices` is at least 1;
    - (device_config_c2) `numDevices` is at most 65536;
    - (device_config_c3) `deviceIds` has as many entries as `numDevices` says;
    - (device_config_c4) no entry of `deviceIds` is negative;
    - (device_config_c5) the entries of `deviceIds` are all different;
    - (device_config_c6) a module has only one `mgpu.device_config`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Mgpu_DeviceConfigAttr:$config);
  let assemblyFormat = "$sym_name custom<DeviceConfig>($config) attr-dict";
  let hasVerifier = 1;
}

def Mgpu_GetDeviceOp : Mgpu_NamedOp<"get_device", [Pure]> {
  let summary = "Get a handle to a GPU device by index";
  let description = [{
    Returns a handle to the device at the index.
    The index must be in the range [0, numDevices) specified by the
    `mgpu.device_config` of the module, or -1, which is the host.

    Constraints, by the label that ends the message about each:
    - (get_device_c1) a constant index is less than the `numDevices` of the
      module's configuration;
    - (get_device_c2) a constant index is at least -1.
  }];
  let arguments = (ins Index:$index);
  let results = (outs Mgpu_Device:$device);
  let assemblyFormat = "$index attr-dict `:` type($device)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

def Mgpu_CreateStreamOp : Mgpu_NamedOp<"create_stream",
    [MemoryEffects<[EnqueuesWork]>]> {
  let summary = "Create a new stream for a given device";
  let description = [{
    Creates an execution stream on a device.
    Streams are the mechanism provided to enable parallel execution.
    Each stream maintains its own queue of operations and executes them in
    order, but operations on different streams may run in parallel.
    In other words, each stream can be thought of as a separate thread of
    execution.
    The returned stream handle must be destroyed with `mgpu.destroy_stream`
    when no longer needed.
  }];
  let arguments = (ins Mgpu_Device:$device);
  let results = (outs Res<Mgpu_Stream, "", [
      MemAlloc<StreamResource, 0, FullEffect>]>:$stream);
  let assemblyFormat = "$device attr-dict `:` type($device) `->` type($stream)";
}

def Mgpu_DestroyStreamOp : Mgpu_Op<"destroy_stream"> {
  let summary = "Destroy a stream";
  let description = [{
    Syntax:

    ```
    operation ::= `mgpu.destroy_stream` $stream attr-dict `:` type($stream)
    ```

    Releases the resources associated with a stream.
    All work enqueued on the stream should complete before destroying it.
    Destroying a stream with pending work is invalid.

    The spelling with the stream's device is accepted too; the device is
    checked where it is visible, and not kept:
    ```mlir
    mgpu.destroy_stream %device %stream : !mgpu.device, !mgpu.stream
    ```

    Constraints, by the label that ends the message about each:
    - (destroy_stream_c1) a device that is named is the one that the stream was
      created on.
  }];
  let arguments = (ins Arg<Mgpu_Stream, "", [
      MemFree<StreamResource, 0, FullEffect>]>:$stream);
  let hasCustomAssemblyFormat = 1;
}

def Mgpu_SyncStreamOp : Mgpu_Op<"sync_stream",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Synchronize a single stream";
  let description = [{
    Syntax:

    ```
    operation ::= `mgpu.sync_stream` $stream attr-dict `:` type($stream)
    ```

    Blocks the host until all work submitted to a stream has completed.

    The spelling with the stream's device is accepted too; the device is
    checked where it is visible, and not kept:
    ```mlir
    mgpu.sync_stream %device %stream : !mgpu.device, !mgpu.stream
    ```

    Constraints, by the label that ends the message about each:
    - (sync_stream_c1) a device that is named is the one that the stream was
      created on.
  }];
  let arguments = (ins Arg<Mgpu_Stream, "", [EnqueuesWork]>:$stream);
  let hasCustomAssemblyFormat = 1;
}

def Mgpu_SyncDeviceOp : Mgpu_Op<"sync_device",
    [MemoryEffects<[MemRead, MemWrite, EnqueuesWork]>]> {
  let summary = "Synchronize on a GPU";
  let description = [{
    Blocks the host until all work submitted to a GPU has completed.
    Use `mgpu.sync_stream` to synchronize individual streams.
  }];
  let arguments = (ins Mgpu_Device:$device);
  let assemblyFormat = "$device attr-dict `:` type($device)";
}

def Mgpu_StreamWaitOp : Mgpu_Op<"stream_wait"> {
  let summary = "Make one stream wait on another";
  let description = [{
    Wait for all streams in `waitOnStreams` to complete.
    Work submitted to `waitingStream` after this op will not begin until all
    recorded work on the waited-on streams has completed.
    This enables more fine-grained synchronization rather than waiting for the
    entire GPU to complete.
    Streams may reside on different GPUs (and it is almost expected for this
    dialect).

    Constraints, by the label that ends the message about each:
    - (stream_wait_c1) there is at least one stream to wait on.
  }];
  let arguments = (ins Arg<Mgpu_Stream, "", [EnqueuesWork]>:$waitingStream,
      Arg<Variadic<Mgpu_Stream>, "", [
          MemRead<StreamResource, 0, FullEffect>]>:$waitOnStreams);
  let assemblyFormat = [{
    $waitingStream `,` $waitOnStreams attr-dict `:`
    type($waitingStream) `,` type($waitOnStreams)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Mgpu_AllocOp : Mgpu_NamedOp<"alloc"> {
  let summary = "Allocate device memory";
  let description = [{
    Allocates memory for a device. The shape is static and the layout the
    identity: the op has no operands that would say more.

    Constraints, by the label that ends the message about each:
    - (alloc_c1) the shape is static;
    - (alloc_c2) the layout is the identity.
  }];
  let arguments = (ins Mgpu_Device:$device);
  let results = (outs Res<AnyMemRef, "", [MemAlloc]>:$ptr);
  let assemblyFormat = "$device attr-dict `:` type($device) `->` type($ptr)";
  let hasVerifier = 1;
}

def Mgpu_FreeOp : Mgpu_Op<"free"> {
  let summary = "Free device memory";
  let description = [{
    Releases memory allocated for a device. The pointer must
    have been allocated on the same device.

    Constraints, by the label that ends the message about each:
    - (free_c1) the device is the one that the buffer was allocated on.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemFree]>:$ptr, Mgpu_Device:$device);
  let assemblyFormat =
      "$ptr `,` $device attr-dict `:` type($ptr) `,` type($device)";
  let hasVerifier = 1;
}

def Mgpu_MemcpyOp : Mgpu_CommandOp<"memcpy"> {
  let summary = "Copy memory between devices";
  let description = [{
    Copies the contents of `src` to `dst`.
    The source and destination memrefs must have the same element type and
    number of elements.
    Supports copying between different devices (peer-to-peer) or
    between host and device memory.

    If `stream` is provided the copy is enqueued on that stream (async);
    otherwise it executes synchronously (blocking the host until the copy
    completes).

    Constraints, by the label that ends the message about each:
    - (memcpy_c1) both buffers have the same element type;
    - (memcpy_c2) the number of elements fits in 64 bits;
    - (memcpy_c3) both buffers have the same number of elements.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemWrite]>:$dst,
      Arg<AnyMemRef, "", [MemRead]>:$src, Mgpu_Device:$dstDevice,
      Mgpu_Device:$srcDevice, Optional<Mgpu_Stream>:$stream);
  let assemblyFormat = [{
    $dst `,` $src `,` $dstDevice `,` $srcDevice
    (`stream` $stream^ `:` type($stream))?
    attr-dict `:` type($dst) `,` type($src) `,` type($dstDevice) `,`
    type($srcDevice)
  }];
  let hasVerifier = 1;
}

def Mgpu_ShardedAllocOp : Mgpu_NamedOp<"sharded_alloc"> {
  let summary = "Grouped allocation for memory allocation across multiple GPUs";
  let description = [{
    Allocates one shard buffer per GPU: equal slices of the logical shape along
    `shardAxis` (`uniform`, which needs a divisible dimension), slices of any
    size that add up to it (`uneven`), or the whole of it (`replicate`).

    Example — 4 shards of [1024x512xf32] along axis 0:
    ```mlir
    %s0, %s1, %s2, %s3 = mgpu.sharded_alloc %dev0, %dev1, %dev2, %dev3
        logicalShape = [1024, 512] shardAxis = 0 shardKind = uniform
        : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
        -> memref<256x512xf32>, memref<256x512xf32>,
           memref<256x512xf32>, memref<256x512xf32>
    ```

    Constraints, by the label that ends the message about each:
    - (sharded_alloc_c1) there is at least one device;
    - (sharded_alloc_c2) there is one shard for each device;
    - (sharded_alloc_c3) no size of `logicalShape` is negative;
    - (sharded_alloc_c4) `shardAxis` is a dimension of `logicalShape`;
    - (sharded_alloc_c5) all shards have the same element type;
    - (sharded_alloc_c6) the size along `shardAxis` of `uniform` shards is
      divisible by the number of devices;
    - (sharded_alloc_c7) each shard has the rank of `logicalShape`;
    - (sharded_alloc_c8) each shard has the sizes that its kind asks for;
    - (sharded_alloc_c9) `uneven` shards add up to the size along `shardAxis`;
    - (sharded_alloc_c10) the shape of each shard is static;
    - (sharded_alloc_c11) the layout of each shard is the identity.
  }];
  let arguments = (ins Variadic<Mgpu_Device>:$devices,
      DenseI64ArrayAttr:$logicalShape, Mgpu_Axis:$shardAxis,
      Mgpu_ShardKindAttr:$shardKind);
  let results = (outs Res<Variadic<AnyMemRef>, "", [MemAlloc]>:$shards);
  let assemblyFormat = [{
    $devices `logicalShape` `=` $logicalShape `shardAxis` `=` $shardAxis
    `shardKind` `=` custom<Sharding>($shardKind) attr-dict `:` type($devices) `->` type($shards)
  }];
  let hasVerifier = 1;
}

def Mgpu_ShardedFreeOp : Mgpu_Op<"sharded_free", [AttrSizedOperandSegments]> {
  let summary = "Grouped free of GPU shard buffers";
  let description = [{
    Free the buffers allocated on the group of GPUs. Each buffer in
    `shards` is freed on the corresponding GPU in `devices`.

    Example (the flat spelling):
    ```mlir
    mgpu.sharded_free %s0, %s1, %s2, %s3, %dev0, %dev1, %dev2, %dev3
        : memref<256x512xf32>, memref<256x512xf32>,
          memref<256x512xf32>, memref<256x512xf32>,
          !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
    ```

    Constraints, by the label that ends the message about each:
    - (sharded_free_c1) there is at least one device;
    - (sharded_free_c2) there is one shard for each device;
    - (sharded_free_c3) each device is the one that its shard was allocated on.
  }];
  let arguments = (ins Arg<Variadic<AnyMemRef>, "", [MemFree]>:$shards,
      Variadic<Mgpu_Device>:$devices);
  let assemblyFormat = [{
    custom<TwoLists>($shards, $devices) attr-dict `:`
    custom<TwoTypeLists>(type($shards), type($devices))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Distribution
//===----------------------------------------------------------------------===//

def Mgpu_ScatterOp : Mgpu_CommandOp<"scatter", [AttrSizedOperandSegments]> {
  let summary = "Distribute a buffer evenly across multiple GPUs";
  let description = [{
    Splits a buffer along `axis` into equal slices and copies them to
    the destination buffers on target GPUs. Requires the axis
    dimension to be divisible by the number of GPUs. Copies may be
    issued concurrently on the optional `streams`, one for each GPU.

    Example — split [1024xf32] from the host across 4 GPUs along axis 0
    (the flat spelling):
    ```mlir
    mgpu.scatter %hostBuf, %hostDev,
                 %dBuf0, %dBuf1, %dBuf2, %dBuf3,
                 %dev0, %dev1, %dev2, %dev3
        axis = 0
        : memref<1024xf32>, !mgpu.device,
          memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>,
          !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
    ```

    Constraints, by the label that ends the message about each:
    - (scatter_c1) there is at least one device;
    - (scatter_c2) there is one destination for each device;
    - (scatter_c3) there is no stream, or one for each device;
    - (scatter_c4) `axis` is a dimension of the source;
    - (scatter_c5) all buffers have the same element type;
    - (scatter_c6) the size along `axis` is divisible by the number of devices;
    - (scatter_c7) each destination has the rank of the source;
    - (scatter_c8) each destination has an equal part of the source along
      `axis`, and its other sizes.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$src,
      Mgpu_Device:$srcDevice, Arg<Variadic<AnyMemRef>, "", [MemWrite]>:$dstBufs,
      Variadic<Mgpu_Device>:$devices, Variadic<Mgpu_Stream>:$streams,
      Mgpu_Axis:$axis);
  let assemblyFormat = [{
    $src `,` $srcDevice `,` custom<TwoLists>($dstBufs, $devices)
    (`streams` ` ` `[` $streams^ `]` `:` type($streams))?
    `axis` `=` $axis
    attr-dict `:` type($src) `,` type($srcDevice) `,`
    custom<TwoTypeLists>(type($dstBufs), type($devices))
  }];
  let hasVerifier = 1;
}

def Mgpu_UnevenScatterOp
    : Mgpu_CommandOp<"uneven_scatter", [AttrSizedOperandSegments]> {
  let summary = "Distribute a buffer across devices with asymmetric slice sizes";
  let description = [{
    Similar to `mgpu.scatter`, but the size of data to be distributed to each
    GPU is specified. Copies may be issued concurrently on the optional
    `streams`, one for each GPU.

    Example — partition [100xf32] across 3 GPUs as [34, 33, 33] (the flat
    spelling):
    ```mlir
    mgpu.uneven_scatter %src, %srcDev,
                        %dBuf0, %dBuf1, %dBuf2,
                        %dev0, %dev1, %dev2
        sliceSizes = [34, 33, 33] axis = 0
        : memref<100xf32>, !mgpu.device,
          memref<34xf32>, memref<33xf32>, memref<33xf32>,
          !mgpu.device, !mgpu.device, !mgpu.device
    ```

    Constraints, by the label that ends the message about each:
    - (uneven_scatter_c1) there is at least one device;
    - (uneven_scatter_c2) there is one destination for each device;
    - (uneven_scatter_c3) there is no stream, or one for each device;
    - (uneven_scatter_c4) `axis` is a dimension of the source;
    - (uneven_scatter_c5) all buffers have the same element type;
    - (uneven_scatter_c6) there is one slice size for each device;
    - (uneven_scatter_c7) each destination has the rank of the source;
    - (uneven_scatter_c8) each destination has its slice size along `axis`, and
      the other sizes of the source;
    - (uneven_scatter_c9) no slice size is negative;
    - (uneven_scatter_c10) the sum of the slice sizes fits in 64 bits;
    - (uneven_scatter_c11) the slice sizes add up to the size of the source
      along `axis`.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$src,
      Mgpu_Device:$srcDevice, Arg<Variadic<AnyMemRef>, "", [MemWrite]>:$dstBufs,
      Variadic<Mgpu_Device>:$devices, Variadic<Mgpu_Stream>:$streams,
      DenseI64ArrayAttr:$sliceSizes, Mgpu_Axis:$axis);
  let assemblyFormat = [{
    $src `,` $srcDevice `,` custom<TwoLists>($dstBufs, $devices)
    (`streams` ` ` `[` $streams^ `]` `:` type($streams))?
    `sliceSizes` `=` $sliceSizes `axis` `=` $axis
    attr-dict `:` type($src) `,` type($srcDevice) `,`
    custom<TwoTypeLists>(type($dstBufs), type($devices))
  }];
  let hasVerifier = 1;
}

def Mgpu_GatherOp : Mgpu_CommandOp<"gather", [AttrSizedOperandSegments]> {
  let summary = "Concatenate device-local shards into a single destination";
  let description = [{
    The opposite of `mgpu.scatter`. Copies shard buffers from multiple
    devices and combines them along `axis`. Supports uneven shards. Copies may
    be issued concurrently on the optional `streams`, one for each GPU.

    Example — gather 4x[256xf32] back into [1024xf32] on the host (the flat
    spelling):
    ```mlir
    mgpu.gather %hostBuf, %hostDev,
                %dBuf0, %dBuf1, %dBuf2, %dBuf3,
                %dev0, %dev1, %dev2, %dev3
        axis = 0
        : memref<1024xf32>, !mgpu.device,
          memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>,
          !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
    ```

    Constraints, by the label that ends the message about each:
    - (gather_c1) there is at least one device;
    - (gather_c2) there is one source for each device;
    - (gather_c3) there is no stream, or one for each device;
    - (gather_c4) `axis` is a dimension of the destination;
    - (gather_c5) all buffers have the same element type;
    - (gather_c6) the sources add up to the size of the destination along
      `axis`;
    - (gather_c7) each source has the rank of the destination;
    - (gather_c8) each source has the sizes of the destination but along `axis`.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemWrite]>:$dst,
      Mgpu_Device:$dstDevice, Arg<Variadic<AnyMemRef>, "", [MemRead]>:$srcBufs,
      Variadic<Mgpu_Device>:$devices, Variadic<Mgpu_Stream>:$streams,
      Mgpu_Axis:$axis);
  let assemblyFormat = [{
    $dst `,` $dstDevice `,` custom<TwoLists>($srcBufs, $devices)
    (`streams` ` ` `[` $streams^ `]` `:` type($streams))?
    `axis` `=` $axis
    attr-dict `:` type($dst) `,` type($dstDevice) `,`
    custom<TwoTypeLists>(type($srcBufs), type($devices))
  }];
  let hasVerifier = 1;
}

def Mgpu_ReplicateOp : Mgpu_CommandOp<"replicate", [AttrSizedOperandSegments]> {
  let summary = "The CPU copies a buffer to every GPU";
  let description = [{
    The CPU copies a buffer to all target GPUs.
    All destination buffers must have the same shape and element type as `src`.
    Copies may be issued concurrently on the optional `streams`, one for each
    GPU.

    Example — the CPU copies a [512xf32] weight buffer to 4 GPUs (the flat
    spelling):
    ```mlir
    mgpu.replicate %weights, %hostDev,
                   %dev0, %dev1, %dev2, %dev3,
                   %wBuf0, %wBuf1, %wBuf2, %wBuf3
        : memref<512xf32>, !mgpu.device,
          !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device,
          memref<512xf32>, memref<512xf32>, memref<512xf32>, memref<512xf32>
    ```

    Constraints, by the label that ends the message about each:
    - (replicate_c1) there is at least one device;
    - (replicate_c2) there is one destination for each device;
    - (replicate_c3) there is no stream, or one for each device;
    - (replicate_c4) all buffers have the same element type;
    - (replicate_c5) each destination has the shape of the source.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$src,
      Mgpu_Device:$srcDevice, Variadic<Mgpu_Device>:$devices,
      Arg<Variadic<AnyMemRef>, "", [MemWrite]>:$dstBufs,
      Variadic<Mgpu_Stream>:$streams);
  let assemblyFormat = [{
    $src `,` $srcDevice `,` custom<TwoLists>($devices, $dstBufs)
    (`streams` ` ` `[` $streams^ `]` `:` type($streams))?
    attr-dict `:` type($src) `,` type($srcDevice) `,`
    custom<TwoTypeLists>(type($devices), type($dstBufs))
  }];
  let hasVerifier = 1;
}

include "dialect/mgpu/MgpuKernelOps.td"
include "dialect/mgpu/MgpuHostOps.td"
include "dialect/mgpu/MgpuCollectiveOps.td"
include "dialect/mgpu/MgpuExchangeOps.td"

#endif // MGPU_DIALECT_MGPU_MGPUOPS_TD
