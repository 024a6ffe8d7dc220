// RUN: mgpu-tune run %s 2>&1 | FileCheck %s

// MLIR's schedule makes tensor copies, barriers and waits of two copies in a kernel.
// CHECK: loaded 7.000000
// CHECK-NEXT: loaded 3.000000

memref.global "private" @left : memref<64x8xf32, 3>
memref.global "private" @right : memref<8x128xf32, 3>
func.func @main() {
  %c45 = arith.constant 45 : index
  %c7 = arith.constant 7 : index
  %c64 = arith.constant 64 : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %f3 = arith.constant 3.0 : f32
  %h = memref.alloc() : memref<64x8xf32>
  %g = memref.alloc() : memref<8x128xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      memref.store %f3, %g[%i, %j] : memref<8x128xf32>
    }
  }
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %k = arith.index_cast %j : index to i64
      %f = arith.uitofp %k : i64 to f32
      memref.store %f, %h[%i, %j] : memref<64x8xf32>
    }
  }
  %t = gpu.wait async
  %d, %t1 = gpu.alloc async [%t] () : memref<64x8xf32>
  %e, %t2 = gpu.alloc async [%t] () : memref<8x128xf32>
  %t3 = gpu.memcpy async [%t] %d, %h : memref<64x8xf32>, memref<64x8xf32>
  %t4 = gpu.memcpy async [%t] %e, %g : memref<8x128xf32>, memref<8x128xf32>
  gpu.wait [%t3, %t4]
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1) threads(%tx, %ty, %tz) in (%b0 = %c128, %b1 = %c1, %b2 = %c1) {
    %l = memref.get_global @left : memref<64x8xf32, 3>
    %r = memref.get_global @right : memref<8x128xf32, 3>
    linalg.copy ins(%d : memref<64x8xf32>) outs(%l : memref<64x8xf32, 3>)
    linalg.copy ins(%e : memref<8x128xf32>) outs(%r : memref<8x128xf32, 3>)
    %id = gpu.thread_id x
    %me = arith.cmpi eq, %id, %c0 : index
    scf.if %me {
      %p = memref.load %l[%c45, %c7] : memref<64x8xf32, 3>
      %q = memref.load %r[%c7, %c0] : memref<8x128xf32, 3>
      gpu.printf "loaded %f\0A", %p : f32
      gpu.printf "loaded %f\0A", %q : f32
    }
    gpu.terminator
  }
  return
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %copies = transform.structured.match ops{["linalg.copy"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.nvgpu.rewrite_copy_as_tma %copies : (!transform.any_op) -> ()
    transform.yield
  }
}
