// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_PASSES_TD
#define MGPU_DIALECT_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

// Each pass looks at what host code runs from this function on (HostCode.h):
// functions that it does not reach stay as they are.
def EntryOption : Option<"entry", "entry", "std::string", [{"main"}],
    "The function whose host code, with what it calls, is converted">;

def ConvertGpuLaunchToMgpu
    : Pass<"convert-gpu-launch-to-mgpu", "::mlir::ModuleOp"> {
  let summary = "Convert host code of the gpu dialect into mgpu's";
  let description = [{
    Turns each gpu.launch_func, with the gpu.func that it names, and each
    gpu.launch into an mgpu.launch: on the device that gpu.set_default_device
    chose, else on that of its memrefs, else on device 0. Branches between
    blocks of a kernel become scf. Functions and globals that kernels name are
    copied out of their gpu.module, under another name where that is taken, and
    gpu.modules that are not used any more are erased.

    gpu.alloc, dealloc, memcpy and memset become operations of mgpu on the same
    device. A token is a stream of its own, which has waited for those that it
    depends on; gpu.wait without one synchronises. Registered memory needs no
    operation: PlaceHostMemory places what devices use. Calls of the printing
    functions of MLIR's runner, and vector.print, become mgpu.output.

    An error names what has no form: clusters of a given size, streams of
    another dialect, memory in other spaces or of a dynamic size, a default
    device that depends on loops or branches.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"];
}

def ConvertGpuSparseToLaunches
    : Pass<"convert-gpu-sparse-to-launches", "::mlir::ModuleOp"> {
  let summary = "Convert sparse operations of the gpu dialect into launches";
  let description = [{
    A handle stands for memory and sizes. Products of sparse matrices (spmv,
    spmm, sddmm, spgemm) become gpu.launch operations in the order of their
    tokens, of which each thread computes a row or an element, and adds the
    terms in the order of memory. Sizes of buffers become 1, as launches need
    none. Calls that open and close MLIR's sparse libraries are erased.

    An error names handles that loops, branches or calls hand on, and memory
    with gaps.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def PlaceHostMemory : Pass<"mgpu-place-host-memory", "::mlir::ModuleOp"> {
  let summary = "Give host memory that devices use a buffer of device 0";
  let description = [{
    Memory of memref.alloc, of a global or of an argument that a launch uses, or
    that host code reads or writes element by element, becomes a buffer of
    device 0. Arguments are copied there at the start of the function, and back
    at its end where something may write them. A launch on another device works
    on a copy, which goes back behind it where the launch may write.

    The module gets an mgpu.device_config where it has none.
  }];
  let options = [EntryOption,
    Option<"devices", "devices", "int64_t", "0",
           "How many devices there are where nothing says it; 0: those that "
           "the text names, at least one">];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def OutlineHostCode : Pass<"mgpu-outline-host-code", "::mlir::ModuleOp"> {
  let summary = "Make launches of host code that touches memory";
  let description = [{
    Host code that loads, stores or computes vectors becomes a launch of one
    thread on device 0: all that follows each other with nothing but pure
    operations between, with loops and branches that do nothing else. A value
    that later code uses is kept in memory. An assertion about such a value
    becomes an mgpu.output.

    An error names what would need such a value before the program runs: loops
    and branches around launches, and sizes.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::vector::VectorDialect"];
}

def JoinProductRows : Pass<"mgpu-join-product-rows", "::mlir::ModuleOp"> {
  let summary = "Make one reduction of a product of a few vectors and a matrix";
  let description = [{
    Turns each product of 2 to 16 vectors with a large matrix (ProductSteps.h)
    into a reduction with a result for each vector, on views of the sums, so that
    the matrix is read once. A linalg.fill that begins the sums becomes one for
    each view.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect"];
}

def SplitReductions : Pass<"mgpu-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Split long reductions of few rows, so that blocks share them";
  let description = [{
    Turns each linalg operation that reduces few and long rows of device buffers
    (RowThreads.h) into one that reduces chunks of them, to a buffer that the
    pass allocates, and one that reduces what the chunks gave. So does a product
    of vectors with a matrix whose columns they are multiplied with. Where the length
    is no multiple of the chunks', one more takes the rest. Dimensions that follow
    each other in the loops and in memory become one where that is split, or
    threads share its rows.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect"];
}

def FuseLaunches : Pass<"mgpu-fuse-launches", "::mlir::ModuleOp"> {
  let summary = "Find linalg operations and parallel loops that share a launch";
  let description = [{
    Gives linalg operations and scf.parallel loops on device buffers that follow
    each other, and may run in one launch, the same number as attribute
    `mgpu.launch_group`. The conversions below make one launch of each group,
    and one of each operation without a group. A group is a run of operations on
    the same rows (RowThreads.h) or on the same points (PointForm.h).

    A missed-optimisation remark of category `mgpu-fuse-launches` says why an
    operation does not share a launch with the one before it.
  }];
  let options = [EntryOption,
    Option<"products", "products", "::mgpu::conversion::FuseProducts",
      "::mgpu::conversion::FuseProducts::Wide",
      "Matrix products that share launches with elementwise operations",
      [{::llvm::cl::values(
        clEnumValN(::mgpu::conversion::FuseProducts::None, "none", "None"),
        clEnumValN(::mgpu::conversion::FuseProducts::Wide, "wide",
                   "Those of f32 and f64: a library computes the narrow ones"),
        clEnumValN(::mgpu::conversion::FuseProducts::All, "all", "All"))}]>];
}

def ConvertLinalgRowsToMgpu
    : Pass<"convert-linalg-rows-to-mgpu", "::mlir::ModuleOp"> {
  let summary = "Convert reductions of rows into launches that share each row";
  let description = [{
    Turns linalg operations that reduce the rows of buffers, and softmax along
    them, into launches in which several threads share a row, where rows are few
    or long enough (RowThreads.h). The operations of a group share the rows.
    docs/numerics.md states the order of sums. Other operations stay.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

def ConvertLinalgPointsToMgpu
    : Pass<"convert-linalg-points-to-mgpu", "::mlir::ModuleOp"> {
  let summary = "Convert linalg operations into launches, a thread a point";
  let description = [{
    Turns each linalg operation on device buffers, with the scf.parallel loops
    of its group, into an mgpu.launch without a stream: a thread for each point
    of the parallel dimensions, which runs the reduction dimensions one after
    the other, the last one innermost; of softmax, a thread for each row.

    An error names an operation that has no such form: it needs buffers of
    static shapes, and no results.
  }];
  let options = [EntryOption,
    Option<"checkGroups", "check-groups", "bool", "true",
           "Refuse a group of operations that may not share a launch; false "
           "where mgpu-fuse-launches has just made the groups">];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

def ConvertParallelLoopsToMgpu
    : Pass<"convert-parallel-loops-to-mgpu", "::mlir::ModuleOp"> {
  let summary = "Convert scf.parallel in host code into launches";
  let description = [{
    Turns each scf.parallel that uses device buffers, with the other loops of
    its group, into an mgpu.launch without a stream: a thread for each
    iteration. Ranges may be values.

    An error names a loop that has no such form: it has at most three
    dimensions, and no results.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::scf::SCFDialect"];
}

def RemoveUnreadBuffers
    : Pass<"mgpu-remove-unread-buffers", "::mlir::ModuleOp"> {
  let summary = "Remove buffers that shared launches no longer read";
  let description = [{
    The conversions of groups mark an mgpu.alloc with `forwarded` when a
    launch takes what it has just stored there from a register. Removes such a
    buffer, and the stores to it, where launches now only store there.
  }];
}

def ConvertLaunchIdsToGpu
    : Pass<"convert-launch-ids-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Convert id arguments of mgpu.launch into gpu operations";
  let description = [{
    Block arguments of an mgpu.launch that stand for ids and sizes become
    gpu.block_id, gpu.thread_id, gpu.grid_dim and gpu.block_dim, so that later
    walks know one form.
  }];
}

//===----------------------------------------------------------------------===//
// From functions over tensors to the mgpu dialect
//===----------------------------------------------------------------------===//

def SelectEntry : Pass<"mgpu-select-entry", "::mlir::ModuleOp"> {
  let summary = "Make all functions but the entry private";
  let description = [{
    Those that nothing names go. The inliner and symbol-dce then leave one
    function, so that no later pass looks at what does not run.
  }];
  let options = [EntryOption];
}

def ConvertShardToSpmd : Pass<"convert-shard-to-spmd", "::mlir::ModuleOp"> {
  let summary = "Convert the shard dialect into the spmd dialect";
  let description = [{
    The devices are those of the shard.grid, row-major. shard.shard becomes
    spmd.layout_constraint; collectives, shifts, a send with the recv behind it
    and update_halo become collectives of devices; indices become numbers of the
    device.

    An error names what has no meaning here: a grid with `?`, a root that is not
    a constant, annotations with halos or uneven parts.
  }];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mgpu::spmd::SpmdDialect", "::mlir::arith::ArithDialect",
    "::mlir::shard::ShardDialect", "::mlir::tensor::TensorDialect"];
}

def PartitionTensors : Pass<"spmd-partition-tensors", "::mlir::ModuleOp"> {
  let summary = "Make the program of one device of one over whole tensors";
  let description = [{
    Takes each function with spmd.layout_constraint that is the entry, or that
    the entry runs with spmd.call. Finds the layout of
    each value, forward and backward from those that the program asks for:
    linalg, elementwise operations, reshapes, slices, pads and concatenations
    are cut along the dimensions that the tensors share, as in an einsum. Where
    two tensors want one axis of the mesh, the one is taken that makes devices
    receive the fewest bytes. Then each operation becomes one on parts, with
    slices and collectives where a layout changes, and with an all_reduce or
    reduce_scatter behind a reduction whose index is cut. Operations without a
    rule compute on whole tensors, on each device.

    An error names operations on one device's part, which such a function must
    not have.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::spmd::SpmdDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def InlineFunctions : Pass<"spmd-inline-functions", "::mlir::ModuleOp"> {
  let summary = "Inline functions of one block";
  let description = [{
    Puts into the entry function the bodies of functions of one block that it
    calls, with those that they call. A function that calls itself stays. Its
    time grows with the operations; that of MLIR's inliner, which moves all
    operations behind a call, with their number times that of the calls.
  }];
  let options = [EntryOption];
}

def InlineCalls : Pass<"spmd-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Put the functions that some devices run into spmd.on";
  let description = [{
    Replaces each spmd.call in the entry function by an spmd.on with the body of
    its callee, which spmd-partition-tensors has made the program of one device.
    Device numbers in it become those of the program. Where an operand lies in
    another layout than the callee's, an spmd.move goes before.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::spmd::SpmdDialect",
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def ExpandMpmd : Pass<"mpmd-expand", "::mlir::ModuleOp"> {
  let summary = "Write out loops and calls of a program over several meshes";
  let description = [{
    Of the entry function, into which what it calls with mpmd.call has been
    inlined. The rounds of an mpmd.for follow each other, and an
    mpmd.fragment_call becomes an mpmd.fragment with the callee's body.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::mpmd::MpmdDialect",
                           "::mgpu::stablehlo::StablehloDialect"];
}

def AssignMeshes : Pass<"mpmd-assign-meshes", "::mlir::ModuleOp"> {
  let summary = "Give each operation of a program over several meshes its mesh";
  let description = [{
    Makes fragments and transfers of an entry function with a `topology`. Named
    computations and named tensors get the mesh that `assign` has for their
    name, else the one of the function's attribute `mpmd.assignment`. Named
    computations without a mesh, and other operations, run where their operands
    are, if that is one mesh, else on the first mesh that uses their result; an
    mpmd.reduce combines its operands in their order. An argument is on the
    first mesh that uses it, and a result where it was made; both are in the
    memory that `mhlo.memory_kind` says. What stands in a computation or in a
    fragment is a part of that.

    An error names a computation of which nothing says the mesh, or which stands
    in work of another mesh, operations that do more than give tensors, and
    values that would be in two memories.
  }];
  let options = [EntryOption,
    Option<"assign", "assign", "std::string", [{""}],
           "The meshes of named computations and tensors: f1=m1,f2=m2">];
  let dependentDialects = ["::mgpu::mpmd::MpmdDialect",
                           "::mgpu::stablehlo::StablehloDialect"];
}

def SimplifyFragments : Pass<"mpmd-simplify", "::mlir::ModuleOp"> {
  let summary = "Drop and merge what fragments have too much";
  let description = [{
    Of an entry function of fragments and transfers. Fragments, results,
    operands and transfers that nobody uses go, and those that are there twice
    are there once. A fragment without an origin becomes a part of the last
    fragment on its mesh that it takes something of, if it takes nothing from
    other meshes, else of the one that uses it.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::mpmd::MpmdDialect"];
}

def FlattenMpmd : Pass<"mpmd-flatten", "::mlir::ModuleOp"> {
  let summary = "Make a program over several meshes one of plain tensors";
  let description = [{
    Of an entry function after mpmd-expand: what it means on one device, with
    neither meshes nor shardings.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::mpmd::MpmdDialect",
                           "::mgpu::stablehlo::StablehloDialect"];
}

def SplitBackward : Pass<"mpmd-split-backward", "::mlir::ModuleOp"> {
  let summary = "Split backward fragments for schedules without bubbles";
  let description = [{
    A backward fragment of a microbatch (see mpmd-schedule) of which some
    results are transferred becomes two: one with `split_keep_transferred` that
    computes these and what they need, and one with `split_drop_transferred`
    that computes the rest, which is the gradients of weights. The first gives
    the second what both need. A result that backward work of the microbatch
    with another name takes counts as one that is transferred.
  }];
  let options = [EntryOption,
    Option<"schedule", "schedule", "std::string", [{"zb-h1"}],
           "The schedule; nothing is split for one that does not need it">];
  let dependentDialects = ["::mgpu::mpmd::MpmdDialect"];
}

def ScheduleFragments : Pass<"mpmd-schedule", "::mlir::ModuleOp"> {
  let summary = "Order the fragments of each mesh as a named schedule does";
  let description = [{
    Of an entry function of fragments and transfers. A fragment with an origin
    and a call_counter, its microbatch, is forward work if its origins were not
    transposed, and backward work if they all were once. Each mesh's works come
    into the order of the schedule (docs/schedules.md), and the rest where its
    operands are there. The function gets the mark `in_order`, which
    keeps the planner from changing the order of launches on a device.

    Nothing changes without a schedule, or with `auto`, which lists the
    schedules that the pipeline can take, in remarks. An error names a fragment
    that would come before one of which it needs a result, and a
    pipeline that the schedule is not for.
  }];
  let options = [EntryOption,
    Option<"name", "schedule", "std::string", [{""}],
           "gpipe, 1f1b, eager-1f1b, interleaved, circular, zb-h1, zb-h2, "
           "dualpipev, or auto">];
  let dependentDialects = ["::mgpu::ir::MgpuDialect", "::mgpu::mpmd::MpmdDialect"];
}

def RematFragments : Pass<"mpmd-remat", "::mlir::ModuleOp"> {
  let summary = "Compute forward work again for backward work";
  let description = [{
    A backward fragment that takes results of the forward fragments of its
    microbatch, stage and mesh takes them of copies of these, which stand before
    it and have the attribute `remat`. What it takes of a fragment right before
    it stays.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::mpmd::MpmdDialect"];
}

def ConvertMpmdToSpmd : Pass<"convert-mpmd-to-spmd", "::mlir::ModuleOp"> {
  let summary = "Convert fragments and transfers into the spmd dialect";
  let description = [{
    The meshes of the `topology` get devices one after the other, in its order.
    A fragment becomes a function that an spmd.call runs on the devices of its
    mesh; how they share its arguments and results is what their types say. A
    transfer becomes an spmd.move. Arguments and results are whole tensors, with
    the layouts of their types. The function gets the attribute
    `spmd.device_order` where a mesh lists its devices.

    A tensor in the hosts' memory is there once. A transfer to it, or a fragment
    that gives it, is followed by an spmd.collect, and one of it begins with an
    spmd.distribute.

    Operations of a fragment that is work of a pipeline have that work in their
    location, as `#mpmd.work`.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::mpmd::MpmdDialect",
    "::mgpu::spmd::SpmdDialect", "::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect"];
}

def PrepareStablehlo : Pass<"stablehlo-prepare", "::mlir::ModuleOp"> {
  let summary = "Say in mgpu's words what exporters say of a function";
  let description = [{
    Before functions are inlined: stablehlo.composite becomes a call of its
    decomposition. A constant whose elements stand at the end of the file
    (`dense_resource<name>`) gets them; one whose elements are not in the file
    (`dense_resource<__elided__>`) becomes an argument of the entry function,
    one for each occurrence, named as the constant is.
    `tf.aliasing_output = K` of an argument becomes `spmd.alias` of result K,
    and `jax.arg_info` the name of an argument that has no other.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mgpu::spmd::SpmdDialect"];
}

def ExpandStablehlo : Pass<"stablehlo-expand", "::mlir::ModuleOp"> {
  let summary = "Express some operations of stablehlo and chlo by others";
  let description = [{
    `batch_norm_*` becomes what StableHLO's specification says it is. Operations
    whose shapes are operands (`dynamic_*`, `real_dynamic_slice`,
    `get_dimension_size`) become their static forms where the shapes are known,
    `broadcast` and `chlo.broadcast_*` a `broadcast_in_dim` before the
    operation, and `torch_index_select` a `gather`. An element of a tuple that
    is made in the same function is what the tuple was made of.
  }];
  let dependentDialects = ["::mgpu::stablehlo::StablehloDialect",
                           "::mgpu::chlo::ChloDialect"];
}

def ConvertRunParallelToSdy
    : Pass<"convert-run-parallel-to-sdy", "::mlir::ModuleOp"> {
  let summary = "Make a manual computation of interpreter.run_parallel";
  let description = [{
    The operands of all processes become tensors with an entry for each process,
    of which each device takes its own.

    A function whose shardings cut something is one over whole tensors. Its
    arguments are joined from the parts that the processes give, and constrained;
    they get the parts of its results.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mgpu::sdy::SdyDialect",
                           "::mgpu::stablehlo::StablehloDialect"];
}

def ConvertSdyToSpmd : Pass<"convert-sdy-to-spmd", "::mlir::ModuleOp"> {
  let summary = "Convert what JAX says of devices into the spmd dialect";
  let description = [{
    Of the entry function, into which all that it calls has been inlined.
    Manual computations, Shardy's or XLA's custom calls, become code of one
    device; what enters and leaves them at arguments and results gets a layout.
    Code around them works on whole tensors and runs on each device.
    Collectives of stablehlo become those of spmd.

    Of a program with neither, Shardy's annotations become
    spmd.layout_constraint. One with annotations of XLA alone is refused.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect", "::mgpu::ir::MgpuDialect",
    "::mgpu::spmd::SpmdDialect", "::mgpu::stablehlo::StablehloDialect"];
}

def ConvertStablehloToLinalg
    : Pass<"convert-stablehlo-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Convert stablehlo and chlo into linalg, tensor and scf";
  let description = [{
    Converts the entry function, into which all that it calls has been inlined.
    Integers lose their signs, and operations on them become signed or unsigned
    ones. Tensors of rank 0 whose values follow from constants become numbers of
    host code, which decide loops and branches. A stablehlo.while that counts
    becomes an scf.for; a branch that depends on the devices' numbers becomes a
    choice between the results of both. A custom call of a name that is not known
    becomes an spmd.custom_call, with the kernel that `customs` gives it.

    An error names what has no form: a loop that goes on as long as the devices'
    numbers say, complex and quantised numbers, tokens, and dynamic shapes.
  }];
  let options = [EntryOption,
    ListOption<"customs", "customs", "std::string",
               "The kernels of custom calls: NAME=FILE.cu:ENTRY, or "
               "NAME=registered">];
  let dependentDialects = ["::mgpu::spmd::SpmdDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def NameAttention : Pass<"spmd-name-attention", "::mlir::ModuleOp"> {
  let summary = "Make spmd.attention of softmax(score(Q K^T)) V";
  let description = [{
    Finds a product with V whose other factor, or whose quotient, is a softmax
    along the keys, of a function of the product of Q and K: in any order of
    dimensions, with reshapes, transposes and broadcasts between. What lies
    between Q K^T and the softmax (a scale, masks, conversions) becomes the
    body. Where a value on the way is used otherwise, or the parts of a softmax
    are those of different scores, the operations stay.
  }];
  let dependentDialects = ["::mgpu::spmd::SpmdDialect",
    "::mgpu::ir::MgpuDialect", "::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect"];
}

def ConvertAttentionToMgpu
    : Pass<"convert-attention-to-mgpu", "::mlir::ModuleOp"> {
  let summary = "Convert spmd.attention on device buffers into launches";
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def NameProducts : Pass<"spmd-name-products", "::mlir::ModuleOp"> {
  let summary = "Make linalg.matmul and linalg.batch_matmul of sums of products";
  let description = [{
    Turns each linalg.generic that adds up products of two tensors over shared
    dimensions into linalg.matmul or linalg.batch_matmul: these have tiles, tensor
    cores and libraries. Dimensions of one kind are joined by reshapes. The second
    matrix may lie as [k][n] or [n][k]; what lies otherwise is transposed first,
    where the product is large enough. A linalg.transpose that a product reads is
    taken into it where that is possible.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DecomposeTensors : Pass<"spmd-decompose-tensors", "::mlir::ModuleOp"> {
  let summary = "Give tensor operations the forms that fusion looks into";
  let description = [{
    Turns tensor.concat into slices, folds slices of slices, and turns named
    elementwise operations, broadcasts, transposes and reductions of linalg into
    linalg.generic. Matrix products, convolutions and softmax keep their names.
    A result of a linalg.generic that leaves out parallel dimensions, and is the
    same at each of their points, becomes one of its own.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def FuseElementwise : Pass<"spmd-fuse-elementwise", "::mlir::ModuleOp"> {
  let summary = "Fuse elementwise operations, and reshapes between them";
  let description = [{
    Applies linalg's patterns for elementwise fusion, and for reshapes that a
    linalg.generic can take in, where the value between has no other use.
    Matrix products stay what they are, also beside a reshape: an operation that
    reads a product as rows of several dimensions is made one on its matrix. A
    function of one argument, as exp, stays outside of a sum that would compute
    it in each of its 16 rows or more.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FillSplats : Pass<"spmd-fill-splats", "::mlir::ModuleOp"> {
  let summary = "Fill tensors instead of copying constants of one value";
  let description = [{
    Turns each use of a tensor constant whose elements are all equal into a
    linalg.fill, which shares a launch with what uses it. Other constants are
    copied to the devices when the program is loaded. Each use of a linalg.fill
    or tensor.empty gets one of its own.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def SeparateReads : Pass<"spmd-separate-reads", "::mlir::ModuleOp"> {
  let summary = "Let many operations read a buffer instead of a tensor";
  let description = [{
    Bufferization compares each use of a tensor with all others. Where a tensor
    has many uses, has memory of its own, and all uses only read it, each of
    them gets a tensor of its own over the tensor's buffer.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def MergeEqual : Pass<"spmd-merge-equal", "::mlir::ModuleOp"> {
  let summary = "Eliminate common subexpressions in linear time";
  let description = [{
    Does what `cse` does. That pass compares each operation with all others that
    differ from it in their regions alone; here these are told apart first.
  }];
}

def HoistInvariants : Pass<"spmd-hoist-invariants", "::mlir::ModuleOp"> {
  let summary = "Compute before a loop what is the same in each of its trips";
  let description = [{
    Moves operations over tensors out of scf.for and scf.while, where no trip
    changes what they take, and all that leaves a loop is no larger than what it
    is made of: it lives as long as the loop does. A loop over parts of a layer
    thus cuts out the layer's weights once. Operations that make a small tensor
    large, as broadcasts, stay where their readers may take them in.
  }];
}

def PlaceArguments : Pass<"spmd-place-arguments", "::mlir::ModuleOp"> {
  let summary = "Copy arguments to devices, and results back";
  let description = [{
    Gives the module an mgpu.device_config where it has none. Turns each
    spmd.full_to_shard, and each use of an argument that all devices hold, into
    one spmd.distribute for that argument, and each spmd.shard_to_full, and each
    result that all devices hold, into an spmd.collect. A result with
    `spmd.alias` is stored in the shard of the argument that it is the next
    state of, and collected into that argument, whose role is then resident.
    The attributes of the spmd dialect are gone afterwards.

    An error names arguments of dynamic shape, layouts for different numbers of
    devices, and values whose shape is not what the layout says.
  }];
  let options = [EntryOption,
    Option<"devices", "devices", "int64_t", "0",
           "How many devices run the function; 0: as many as its layouts or "
           "mgpu.device_config say, else one">];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mgpu::spmd::SpmdDialect", "::mlir::tensor::TensorDialect",
    "::mlir::bufferization::BufferizationDialect"];
}

def CheckBufferizable : Pass<"spmd-check-bufferizable", "::mlir::ModuleOp"> {
  let summary = "Report operations on tensors that have no form on buffers";
  let description = [{
    Bufferization would fail on them without saying that other programs run.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def KeepLoopBuffers : Pass<"spmd-keep-loop-buffers", "::mlir::ModuleOp"> {
  let summary = "Give each tensor that a loop carries one buffer";
  let description = [{
    Stores what each trip of an scf.for yields where the tensor that it replaces
    was. After bufferization the loop then carries no memrefs, so it can stay a
    loop of the plan.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def ConvertSpmdToMgpu : Pass<"convert-spmd-to-mgpu", "::mlir::ModuleOp"> {
  let summary = "Make one function for N devices of the one that each runs";
  let description = [{
    Takes the entry function after bufferization, and as many devices as the
    mgpu.device_config says. Buffers become an mgpu.alloc on each device, and
    constants are copied there. The operations of one device stand together
    between two collectives. The calls of a collective follow each other in rank
    order. Loops and branches that all devices take alike stay one.

    An error names what host code cannot do: decide by an element of a tensor,
    use the mgpu dialect beside tensors, or name devices that there are not.
  }];
  let options = [EntryOption];
  let dependentDialects = ["::mgpu::ir::MgpuDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

#endif // MGPU_DIALECT_CONVERSION_PASSES_TD
