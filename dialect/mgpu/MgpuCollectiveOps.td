// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by MgpuOps.td, which has the base classes. Collectives that give
// each device a part of its own are in MgpuExchangeOps.td.

def Mgpu_CreateCommunicatorOp : Mgpu_NamedOp<"create_communicator",
    [MemoryEffects<[CountsCall]>]> {
  let summary = "Create a communicator group for collective operations over a "
                "list of devices.";
  let description = [{
    Establishes a communication group over a set of devices for collective
    operations (all_reduce, all_gather, broadcast, etc.). The ordering of
    devices determines each device's index within the communicator (first device
    is index 0, second is index 1, etc.).
    All collective operations using this communicator must be called by all
    GPUs included in the operation.

    Constraints, by the label that ends the message about each:
    - (create_communicator_c1) there is at least one device;
    - (create_communicator_c2) the devices are all different;
    - (create_communicator_c3) no device is the host.
  }];
  let arguments = (ins Variadic<Mgpu_Device>:$devices);
  let results = (outs Res<Mgpu_Communicator, "", [
      MemAlloc<CommunicatorResource, 0, FullEffect>]>:$comm);
  let assemblyFormat = "$devices attr-dict `:` type($devices) `->` type($comm)";
  let hasVerifier = 1;
}

def Mgpu_AllReduceOp : Mgpu_CollectiveOp<"all_reduce"> {
  let summary = "All-reduce across all GPUs in a communication group";
  let description = [{
    Each GPU sends `sendBuf` and receives the result in `recvBuf`.
    `reductionKind` is the reduction operation (sum, prod, min, max); it may
    also be written as a string.
    Send and receive buffers must have the same shape and element type, so a
    reduction with (sendBuf == recvBuf) is valid.
    All GPUs must call this operation.

    Example:
    ```mlir
    mgpu.all_reduce %send, %recv, %comm, sum
        : memref<256xf32>, memref<256xf32>, !mgpu.communicator
    ```

    Constraints, by the label that ends the message about each:
    - (all_reduce_c1) both buffers have the same element type;
    - (all_reduce_c2) both buffers have the same shape;
    - (all_reduce_c3) the elements are integers or floats.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$sendBuf,
      Arg<AnyMemRef, "", [MemWrite]>:$recvBuf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm,
      Optional<Mgpu_Stream>:$stream, Mgpu_ReductionKindAttr:$reductionKind);
  let assemblyFormat = [{
    $sendBuf `,` $recvBuf `,` $comm `,` custom<Reduction>($reductionKind)
    (`stream` $stream^ `:` type($stream))?
    attr-dict `:` type($sendBuf) `,` type($recvBuf) `,` type($comm)
  }];
}

def Mgpu_BroadcastOp : Mgpu_CollectiveOp<"broadcast"> {
  let summary = "Broadcast from a GPU to all GPUs in a communicator";
  let description = [{
    The `buf` is copied to every other GPU's `buf`. All GPUs
    must call this op with the same root and buffer shape.
    This would usually be used to distribute model parameters, configuration
    data, or other data from a single source to all devices.
    The GPU's buffer serves as the source, and all other GPUs
    receive the same data.

    Constraints, by the label that ends the message about each:
    - (broadcast_c1) a constant `rootRank` is not negative;
    - (broadcast_c2) a constant `rootRank` is less than the number of devices.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead, MemWrite]>:$buf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm, Index:$rootRank,
      Optional<Mgpu_Stream>:$stream);
  let assemblyFormat = [{
    $buf `,` $comm `,` $rootRank (`stream` $stream^ `:` type($stream))?
    attr-dict `:` type($buf) `,` type($comm)
  }];
}

def Mgpu_SendOp : Mgpu_CollectiveOp<"send"> {
  let summary = "Point-to-point send";
  let description = [{
    Sends the contents of `buf` to the specified destination GPU within the
    communication group.
    The destination GPU must have a matching `mgpu.recv` operation.
    If the send and receive operations are not paired correctly then it will
    cause deadlocks.

    Constraints, by the label that ends the message about each:
    - (send_c1) a constant `dstRank` is not negative;
    - (send_c2) a constant `dstRank` is less than the number of devices.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$buf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm, Index:$dstRank,
      Optional<Mgpu_Stream>:$stream);
  let assemblyFormat = [{
    $buf `,` $comm `,` $dstRank (`stream` $stream^ `:` type($stream))?
    attr-dict `:` type($buf) `,` type($comm)
  }];
}

def Mgpu_RecvOp : Mgpu_CollectiveOp<"recv"> {
  let summary = "Point-to-point receive";
  let description = [{
    Receives data from the specified source GPU into `buf`.
    The buffer must have the same shape and element type as the buffer sent by
    the source GPU.
    If the send and receive operations are not paired correctly then it will
    cause deadlocks.

    Constraints, by the label that ends the message about each:
    - (recv_c1) a constant `srcRank` is not negative;
    - (recv_c2) a constant `srcRank` is less than the number of devices.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemWrite]>:$buf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm, Index:$srcRank,
      Optional<Mgpu_Stream>:$stream);
  let assemblyFormat = [{
    $buf `,` $comm `,` $srcRank (`stream` $stream^ `:` type($stream))?
    attr-dict `:` type($buf) `,` type($comm)
  }];
}
