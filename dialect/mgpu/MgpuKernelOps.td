// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by MgpuOps.td, which has the base classes.

def Mgpu_LaunchOp : Mgpu_Op<"launch", [
    AttrSizedOperandSegments, AutomaticAllocationScope, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"TerminatorOp">,
    MemoryEffects<[EnqueuesWork]>]> {
  let summary = "Launch a kernel on a device";
  let description = [{
    Syntax:

    ```
    operation ::= `mgpu.launch` $device
                  (`args` `(` $args^ `:` type($args) `)`)?
                  `grid` `(` $grid `)` `block` `(` $block `)`
                  (`stream` $stream^ (`:` type($stream))?)?
                  (`dynamic_shared_memory_size` $dynamicSharedMemorySize^)?
                  (`workgroup` `(` block arguments with types `)`)?
                  (`attributes` attr-dict)? $body?
    ```

    Launches a region as a kernel on the given device. The region
    body contains the kernel code that will execute on the GPU.
    Directly lowered to a GPU kernel.

    `grid` is the number of blocks in each of one to three dimensions.
    `block` is the number of threads per block in each dimension.
    The total number of threads launched is the product of grid and block.

    If `stream` is provided the kernel is enqueued on that stream (async);
    otherwise it executes synchronously (blocking the host until completion).

    The body may use values from above. `args` lists kernel arguments in an
    order that matters, for kernels given as source. The arguments of the
    body's only block are buffers in workgroup memory, one instance per block
    of threads. `dynamic_shared_memory_size` is in bytes, as in `gpu.launch`.

    Before them the block may take 3, 6, 9 or 12 arguments of type `index`, as
    `gpu.launch` has them: the block ids, the thread ids, the grid's sizes and
    the block's sizes, x, y and z of each. They are then written in the body,
    as `^bb0(%bx: index, ...)`, and so are the buffers.

    ```mlir
    mgpu.launch %dev grid(%blocks) block(%threads) stream %s
        workgroup(%tile : memref<32xf32, #gpu.address_space<workgroup>>) {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<32xf32>
      memref.store %v, %tile[%i] : memref<32xf32, #gpu.address_space<workgroup>>
    }
    ```

    A kernel may be CUDA C++ in a file of its own, in place of the body:

    ```mlir
    mgpu.launch %dev args(%x, %y, %n : memref<?xf32>, memref<?xf32>, index)
        grid(%blocks) block(%threads)
        attributes {source = "k.cu", entry = "k",
                    tunables = {UNROLL = [4, 1, 2, 8]},
                    reads = [0], writes = [1]}
    ```

    `source` is a path, relative to the file of this operation; `entry` names
    an `extern "C" __global__` function there. It is called with `args`, in
    their order: a memref is a pointer to its first element, `index` a
    `long long`, any other number the C++ type of its width. A tunable is a
    macro and the values it may have, the first of them its default: results
    must not depend on them by more than rounding. `reads` and `writes` list the arguments whose
    memory the kernel may read and write, by position; where one of them is
    left out, that is all memrefs. An access is taken to be the whole memref.

    `reference = @f` names a function that computes the same in the same grid
    and block, written as a body is: it takes `args`, memrefs of static shape.
    The host target runs it, and the tuner takes from it how far rounding may
    lead results apart.

    With `opaque`, nothing is known of the kernel but what it touches: `source`
    is the name of what it computes, such as a custom call's, and there is no
    `entry`. It can be checked and planned; what runs it is refused. With
    `registered` beside it, the process that runs it registers a function of
    that name, which the host target calls with the arguments that are only
    read, then with those that are written; the string is for the function to
    read.

    With `objects`, a dictionary from architectures to cubins or PTX, the kernel
    is compiled already, and `source` only says where it comes from.

    Constraints, by the label that ends the message about each:
    - (launch_c1) the grid has one to three sizes, and so has the block;
    - (launch_c2) sizes that are constants are at least 1;
    - (launch_c3) the device is not the host;
    - (launch_c4) a constant `dynamicSharedMemorySize` is not negative;
    - (launch_c5) the body takes 0, 3, 6, 9 or 12 arguments of type `index`;
    - (launch_c6) workgroup buffers are memrefs of static shape and identity
      layout in the workgroup address space;
    - (launch_c7) `entry`, `reference`, `tunables`, `reads`, `writes` and
      `objects` come with `source` only;
    - (launch_c8) `source` is a string that is not empty;
    - (launch_c9) `entry` is the name of a function in `source`;
    - (launch_c10) `reference` is a symbol;
    - (launch_c11) with `source` there are no body and no workgroup buffers;
    - (launch_c12) with `source` each of `args` is a memref or a number;
    - (launch_c13) `reads` and `writes` are lists of positions;
    - (launch_c14) `reads` and `writes` name memrefs among `args`;
    - (launch_c15) each memref among `args` may be read or written;
    - (launch_c16) `tunables` is a dictionary;
    - (launch_c17) there are at most 8 tunables;
    - (launch_c18) the name of a tunable can be that of a macro;
    - (launch_c19) the values of a tunable are numbers from 0 to 2^32 - 1, at
      least one;
    - (launch_c20) a tunable has at most 64 values;
    - (launch_c21) the tunables have at most 2^20 combinations;
    - (launch_c22) the values of a tunable are all different;
    - (launch_c23) `objects` is a dictionary of strings that is not empty;
    - (launch_c24) `opaque` comes with `source`, and without `entry`,
      `reference`, `tunables` and `objects`;
    - (launch_c25) `registered` is a string and comes with `opaque`; all
      arguments are memrefs of static shape without gaps, those that are only
      read before those that are written.
  }];
  let arguments = (ins Mgpu_Device:$device, Variadic<AnyType>:$args,
      Variadic<Index>:$grid, Variadic<Index>:$block,
      Optional<Mgpu_Stream>:$stream, Optional<I32>:$dynamicSharedMemorySize);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // Makes the body's block, with one argument for each workgroup type, and
    // its terminator.
    OpBuilder<(ins "::mlir::Value":$device, "::mlir::ValueRange":$grid,
        "::mlir::ValueRange":$block,
        CArg<"::mlir::Value", "{}">:$stream,
        CArg<"::mlir::ValueRange", "{}">:$args,
        CArg<"::mlir::TypeRange", "{}">:$workgroupTypes,
        CArg<"::mlir::Value", "{}">:$dynamicSharedMemorySize)>];
  let extraClassDeclaration = [{
    /// The buffers in workgroup memory, arguments of the body's block.
    ::mlir::ValueRange getWorkgroupBuffers() {
      return (*this)->getRegion(0).getArguments().drop_front(
          getNumIdArguments());
    }
    /// Whether the kernel is a file of CUDA C++, and the body empty.
    bool hasSource() { return (*this)->hasAttr(getSourceAttrName()); }
    static ::llvm::StringRef getSourceAttrName() { return "source"; }
    static ::llvm::StringRef getOpaqueAttrName() { return "opaque"; }
    /// Whether nothing is known of the kernel but what it touches.
    bool isOpaque() { return (*this)->hasAttr(getOpaqueAttrName()); }
    static ::llvm::StringRef getRegisteredAttrName() { return "registered"; }
    /// Whether the kernel, given as a file, may read or write the memory of
    /// argument `position`.
    bool mayRead(unsigned position);
    bool mayWrite(unsigned position);
    /// The macros to be tuned, each with its values, the default first.
    ::llvm::SmallVector<std::pair<::llvm::StringRef,
                                  ::llvm::SmallVector<int64_t>>> getTunables();
    /// How many arguments of the body's block stand for ids and sizes.
    unsigned getNumIdArguments();
    /// Replaces those arguments by operations of the gpu dialect.
    void replaceIdArguments();
  }];
}

def Mgpu_TerminatorOp : Mgpu_Op<"terminator",
    [Pure, HasParent<"LaunchOp">, Terminator]> {
  let summary = "Terminator for mgpu.launch regions";
  let description = [{
    A terminator for the region of a `mgpu.launch`.
    The region returns no values. It may be left out in the text.
  }];
  let assemblyFormat = "attr-dict";
}
