// RUN: mgpu-tune run %s | FileCheck %s

// A program with a schedule of its own: the product of the block becomes one of a subgroup.
// CHECK: {{\[\[}}2.42188,   2.4668,   2.51172,   2.55664,   2.60156,   2.64648,   2.69141,   2.73633], 
// CHECK-NEXT: [6.29688,   6.40625,   6.51172,   6.61719,   6.72656,   6.83594,   6.94141,   7.04688], 
// CHECK: [60.5625,   61.5312,   62.5,   63.5,   64.5,   65.4375,   66.4375,   67.4375]{{\]}}

!lhs = memref<16x16xf16>
!rhs = memref<16x8xf16>
!res = memref<16x8xf16>
func.func @fill(%m: memref<?x?xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %m, %c0 : memref<?x?xf16>
  %cols = memref.dim %m, %c1 : memref<?x?xf16>
  scf.for %i = %c0 to %rows step %c1 {
    scf.for %j = %c0 to %cols step %c1 {
      %a = arith.muli %i, %cols : index
      %b = arith.addi %a, %j : index
      %n = arith.index_cast %b : index to i32
      %f = arith.sitofp %n : i32 to f16
      %s = arith.constant 64.0 : f16
      %q = arith.divf %f, %s : f16
      memref.store %q, %m[%i, %j] : memref<?x?xf16>
    }
  }
  return
}
func.func @show(%m: !res) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = memref.dim %m, %c0 : !res
  %N = memref.dim %m, %c1 : !res
  %t = memref.alloc(%M, %N) : memref<?x?xf32>
  scf.for %i = %c0 to %M step %c1 {
    scf.for %j = %c0 to %N step %c1 {
      %f = memref.load %m[%i, %j] : !res
      %g = arith.extf %f : f16 to f32
      memref.store %g, %t[%i, %j] : memref<?x?xf32>
    }
  }
  %u = memref.cast %t : memref<?x?xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  memref.dealloc %t : memref<?x?xf32>
  return
}
func.func @main() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %l = memref.alloc() : !lhs
  %r = memref.alloc() : !rhs
  %d = memref.alloc() : !res
  %dl = memref.cast %l : !lhs to memref<?x?xf16>
  %dr = memref.cast %r : !rhs to memref<?x?xf16>
  %dd = memref.cast %d : !res to memref<?x?xf16>
  call @fill(%dl) : (memref<?x?xf16>) -> ()
  call @fill(%dr) : (memref<?x?xf16>) -> ()
  call @fill(%dd) : (memref<?x?xf16>) -> ()
  %ul = memref.cast %l : !lhs to memref<*xf16>
  gpu.host_register %ul : memref<*xf16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    linalg.matmul ins(%l, %r : !lhs, !rhs) outs(%d : !res)
    gpu.terminator
  }
  call @show(%d) : (!res) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %m = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.nvgpu.rewrite_matmul_as_mma_sync %m : (!transform.any_op) -> ()
    transform.yield
  }
}
