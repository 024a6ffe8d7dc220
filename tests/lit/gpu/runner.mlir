// RUN: mgpu-tune run %s > %t.out 2> %t.err && FileCheck %s < %t.out && FileCheck %s --check-prefix=ERR < %t.err

// What programs for MLIR's runner and for ROCm call beside the prints, and sizes
// that are computed.
// CHECK: {{^}}( 5, 1, 0, 3, 2 )
// CHECK-NEXT: sizes = [6, 4] strides = [4, 1] data =
// CHECK-NEXT: {{^\[\[}}1, 1, 1, 1],
// CHECK-NEXT: {{^ \[}}0, 1, 2, 3],
// CHECK: nanoseconds: 0
// ERR: runner.mlir:[[#@LINE+42]]:12: warning: nanoTime gives 0 here

module attributes {gpu.container_module} {
func.func private @verifyMemRefF32(memref<*xf32>, memref<*xf32>) -> i64 attributes {llvm.emit_c_interface}
func.func private @verifyMemRefF64(memref<*xf64>, memref<*xf64>) -> i64
func.func private @verifyMemRefI8(memref<*xi8>, memref<*xi8>) -> i64
func.func private @mgpuMemGetDeviceMemRef1dFloat(memref<?xf32>) -> memref<?xf32>
func.func private @nanoTime() -> i64 attributes {llvm.emit_c_interface}
func.func private @printMemrefF32(memref<*xf32>)

func.func @fill(%m: memref<?xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %m, %c0 : memref<?xf32>
  %d = call @mgpuMemGetDeviceMemRef1dFloat(%m) : (memref<?xf32>) -> memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %f, %d[%bx] : memref<?xf32>
    gpu.terminator
  }
  return
}

gpu.module @device {
  gpu.func @count(%m: memref<?x?xf32>, %row: index) kernel {
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %f = arith.sitofp %i : i32 to f32
    memref.store %f, %m[%row, %t] : memref<?x?xf32>
    gpu.return
  }
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %one = arith.constant 1.0 : f32
  %a = memref.alloc(%c5) : memref<?xf32>
  %b = memref.alloc(%c5) : memref<?xf32>
  call @fill(%a, %one) : (memref<?xf32>, f32) -> ()
  %begin = call @nanoTime() : () -> i64
  %near = arith.constant 1.0000005 : f32
  %far = arith.constant 1.0001 : f32
  call @fill(%b, %far) : (memref<?xf32>, f32) -> ()
  %ua = memref.cast %a : memref<?xf32> to memref<*xf32>
  %ub = memref.cast %b : memref<?xf32> to memref<*xf32>
  %all = call @verifyMemRefF32(%ua, %ub) : (memref<*xf32>, memref<*xf32>) -> i64
  affine.for %i = 0 to 3 {
    affine.store %near, %b[%i] : memref<?xf32>
  }
  scf.forall (%i) in (1) {
    %at = affine.apply affine_map<(d0) -> (d0 + 3)>(%i)
    memref.store %near, %b[%at] : memref<?xf32>
  }
  %last = call @verifyMemRefF32(%ub, %ua) : (memref<*xf32>, memref<*xf32>) -> i64
  memref.store %one, %b[%c2] : memref<?xf32>
  call @fill(%b, %near) : (memref<?xf32>, f32) -> ()
  %none = call @verifyMemRefF32(%ua, %ub) : (memref<*xf32>, memref<*xf32>) -> i64
  // NaN and infinity differ from everything, 1 from 1 + 2e-12.
  %x = memref.alloc() : memref<2x2xf64>
  %y = memref.alloc() : memref<2x2xf64>
  %vx = arith.constant dense<[[0x7FF8000000000000, 0x7FF0000000000000], [1.0, 0.0]]> : vector<2x2xf64>
  %vy = arith.constant dense<[[0x7FF8000000000000, 0x7FF0000000000000], [1.000000000002, 0.0]]> : vector<2x2xf64>
  vector.store %vx, %x[%c0, %c0] : memref<2x2xf64>, vector<2x2xf64>
  vector.store %vy, %y[%c0, %c0] : memref<2x2xf64>, vector<2x2xf64>
  %ux = memref.cast %x : memref<2x2xf64> to memref<*xf64>
  %uy = memref.cast %y : memref<2x2xf64> to memref<*xf64>
  %three = call @verifyMemRefF64(%ux, %uy) : (memref<*xf64>, memref<*xf64>) -> i64
  %p = memref.alloc() : memref<3xi8>
  %q = memref.alloc() : memref<3xi8>
  %vp = arith.constant dense<[1, 2, 3]> : vector<3xi8>
  %vq = arith.constant dense<[1, 3, 2]> : vector<3xi8>
  vector.store %vp, %p[%c0] : memref<3xi8>, vector<3xi8>
  vector.store %vq, %q[%c0] : memref<3xi8>, vector<3xi8>
  %up = memref.cast %p : memref<3xi8> to memref<*xi8>
  %uq = memref.cast %q : memref<3xi8> to memref<*xi8>
  %two = call @verifyMemRefI8(%up, %uq) : (memref<*xi8>, memref<*xi8>) -> i64
  %counts = vector.from_elements %all, %last, %none, %three, %two : vector<5xi64>
  vector.print %counts : vector<5xi64>

  // 2 * 3 rows of 4: sizes from a computation, a fill of a dynamic shape, a
  // launch whose sizes are no indices.
  %c3 = arith.addi %c1, %c2 : index
  %rows = arith.muli %c2, %c3 : index
  %columns = arith.subi %rows, %c2 : index
  %m = memref.alloc(%rows, %columns) : memref<?x?xf32>
  linalg.fill ins(%one : f32) outs(%m : memref<?x?xf32>)
  %i1 = arith.constant 1 : i32
  %i4 = arith.constant 4 : i32
  gpu.launch_func @device::@count blocks in (%i1, %i1, %i1) threads in (%i4, %i1, %i1) : i32 args(%m : memref<?x?xf32>, %c1 : index)
  %um = memref.cast %m : memref<?x?xf32> to memref<*xf32>
  call @printMemrefF32(%um) : (memref<*xf32>) -> ()
  %end = call @nanoTime() : () -> i64
  %time = arith.subi %end, %begin : i64
  vector.print str "nanoseconds: "
  vector.print %time : i64
  return
}
}
