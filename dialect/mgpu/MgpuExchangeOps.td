// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives in which buffers are cut along an axis, or in which each device
// receives from another one. Included by MgpuOps.td, which has the base classes.

def Mgpu_AllGatherOp : Mgpu_CollectiveOp<"all_gather"> {
  let summary = "All-gather across all GPUs in a communicator";
  let description = [{
    Each GPU sends `sendBuf` and every GPU receives the result in `recvBuf`.
    The element types of the buffers must match.
    GPU i's contribution appears at position i in the result.

    `recvBuf` is as many times `sendBuf` along dimension `axis` (0 where none is
    written) as the communicator has GPUs; or both have the same shape, and GPU
    i contributes slice i along that dimension of its `sendBuf`.

    Example — two GPUs put their columns side by side:
    ```mlir
    mgpu.all_gather %send, %recv, %comm axis = 1
        : memref<4x3xf32>, memref<4x6xf32>, !mgpu.communicator
    ```

    Constraints, by the label that ends the message about each:
    - (all_gather_c1) both buffers have the same element type;
    - (all_gather_c2) both buffers have the same rank;
    - (all_gather_c3) buffers of rank 0 are for a communicator of one device;
    - (all_gather_c4) both buffers have the same sizes but along `axis`;
    - (all_gather_c5) where both have the same shape, the size along `axis` is
      divisible by the number of devices;
    - (all_gather_c6) else the size of `recvBuf` along `axis` is as many times
      that of `sendBuf` as there are devices;
    - (all_gather_c7) `axis` is a dimension of the buffers, or 0.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$sendBuf,
      Arg<AnyMemRef, "", [MemWrite]>:$recvBuf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm,
      Optional<Mgpu_Stream>:$stream, DefaultValuedAttr<Mgpu_Axis, "0">:$axis);
  let assemblyFormat = [{
    $sendBuf `,` $recvBuf `,` $comm (`stream` $stream^ `:` type($stream))?
    (`axis` `=` $axis^)?
    attr-dict `:` type($sendBuf) `,` type($recvBuf) `,` type($comm)
  }];
}

def Mgpu_ReduceScatterOp : Mgpu_CollectiveOp<"reduce_scatter"> {
  let summary = "Reduction across all GPUs of which each receives a part";
  let description = [{
    The `sendBuf` of all GPUs are combined element by element, in the order of
    the communicator, as by `all_reduce`. The result is cut along dimension
    `axis` (0 where none is written) into as many equal slices as the
    communicator has GPUs, and GPU i receives slice i in its `recvBuf`.
    All GPUs must call this operation.

    `recvBuf` may be a view of `sendBuf` that is exactly the GPU's own slice.

    Example — two GPUs add matrices; the first receives the left half of the
    sum, the second the right half:
    ```mlir
    mgpu.reduce_scatter %send, %recv, %comm, sum axis = 1
        : memref<4x6xf32>, memref<4x3xf32>, !mgpu.communicator
    ```

    Constraints, by the label that ends the message about each:
    - (reduce_scatter_c1) both buffers have the same element type;
    - (reduce_scatter_c2) both buffers have the same rank;
    - (reduce_scatter_c3) `axis` is a dimension of the buffers;
    - (reduce_scatter_c4) both buffers have the same sizes but along `axis`;
    - (reduce_scatter_c5) the size of `sendBuf` along `axis` is as many times
      that of `recvBuf` as there are devices;
    - (reduce_scatter_c6) the elements are integers or floats.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$sendBuf,
      Arg<AnyMemRef, "", [MemWrite]>:$recvBuf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm,
      Optional<Mgpu_Stream>:$stream, Mgpu_ReductionKindAttr:$reductionKind,
      DefaultValuedAttr<Mgpu_Axis, "0">:$axis);
  let assemblyFormat = [{
    $sendBuf `,` $recvBuf `,` $comm `,` custom<Reduction>($reductionKind)
    (`stream` $stream^ `:` type($stream))? (`axis` `=` $axis^)?
    attr-dict `:` type($sendBuf) `,` type($recvBuf) `,` type($comm)
  }];
}

def Mgpu_AllToAllOp : Mgpu_CollectiveOp<"all_to_all"> {
  let summary = "Exchange in which each GPU sends a part to every GPU";
  let description = [{
    Each GPU's `sendBuf` is cut along dimension `splitAxis` into as many equal
    slices as the communicator has GPUs, and slice j is sent to GPU j. Each GPU
    puts the slices it gets one after the other along dimension `concatAxis` of
    its `recvBuf`, that of GPU i at position i.
    All GPUs must call this operation.

    `sendBuf` and `recvBuf` may be the same view where the two axes are equal.

    Example — two GPUs that hold three columns each of a matrix of 4 x 6 hold
    two whole rows each afterwards:
    ```mlir
    mgpu.all_to_all %send, %recv, %comm splitAxis = 0 concatAxis = 1
        : memref<4x3xf32>, memref<2x6xf32>, !mgpu.communicator
    ```

    Constraints, by the label that ends the message about each:
    - (all_to_all_c1) both buffers have the same element type;
    - (all_to_all_c2) both buffers have the same rank;
    - (all_to_all_c3) `splitAxis` and `concatAxis` are dimensions of the buffers;
    - (all_to_all_c4) the size of `sendBuf` along `splitAxis` is divisible by the
      number of devices;
    - (all_to_all_c5) `recvBuf` has the sizes of `sendBuf`, but as many times
      less along `splitAxis`, and then as many times more along `concatAxis`, as
      there are devices.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$sendBuf,
      Arg<AnyMemRef, "", [MemWrite]>:$recvBuf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm,
      Optional<Mgpu_Stream>:$stream, Mgpu_Axis:$splitAxis,
      Mgpu_Axis:$concatAxis);
  let assemblyFormat = [{
    $sendBuf `,` $recvBuf `,` $comm (`stream` $stream^ `:` type($stream))?
    `splitAxis` `=` $splitAxis `concatAxis` `=` $concatAxis
    attr-dict `:` type($sendBuf) `,` type($recvBuf) `,` type($comm)
  }];
}

def Mgpu_PermuteOp : Mgpu_CollectiveOp<"permute"> {
  let summary = "Sends of which each GPU makes and receives at most one";
  let description = [{
    Each pair [s, t] of `pairs` says that GPU t receives in its `recvBuf` what
    GPU s has in its `sendBuf`; the numbers are positions in the communicator.
    A GPU that is no pair's target receives zeros. A GPU may send to itself.
    All GPUs must call this operation with the same pairs, in any order, those
    that are in no pair as well.

    `sendBuf` and `recvBuf` may be the same view.

    Example — a shift by one among three GPUs; the first receives zeros:
    ```mlir
    mgpu.permute %send, %recv, %comm pairs = [[0, 1], [1, 2]]
        : memref<8xf32>, memref<8xf32>, !mgpu.communicator
    ```

    Constraints, by the label that ends the message about each:
    - (permute_c1) both buffers have the same element type;
    - (permute_c2) both buffers have the same shape;
    - (permute_c3) `pairs` has a source and a target for each pair;
    - (permute_c4) no source or target is negative;
    - (permute_c5) sources and targets are less than the number of devices;
    - (permute_c6) no GPU is the source of two pairs;
    - (permute_c7) no GPU is the target of two pairs.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$sendBuf,
      Arg<AnyMemRef, "", [MemWrite]>:$recvBuf,
      Arg<Mgpu_Communicator, "", [CountsCall]>:$comm,
      Optional<Mgpu_Stream>:$stream, DenseI64ArrayAttr:$pairs);
  let assemblyFormat = [{
    $sendBuf `,` $recvBuf `,` $comm (`stream` $stream^ `:` type($stream))?
    `pairs` `=` custom<Pairs>($pairs)
    attr-dict `:` type($sendBuf) `,` type($recvBuf) `,` type($comm)
  }];
}
