// RUN: mgpu-tune run %s | FileCheck %s

// Operations on whole vectors in a kernel.
// CHECK: ( 58, 64, 139, 154 )
// CHECK-NEXT: ( ( 1, 4 ), ( 2, 5 ), ( 3, 6 ) )
// CHECK-NEXT: ( 6, 15 )
// CHECK-NEXT: ( ( 3, 4 ), ( 6, 8 ) )
// CHECK-NEXT: ( 20, 40, -1, -1 )
// CHECK-NEXT: ( 10, -1, 20, 30 )
// CHECK-NEXT: ( 40, 0, 20, 10 )
// CHECK-NEXT: ( ( 30, 40, 7 ) )
// CHECK-NEXT: ( 1065353216, 1073741824 )
// CHECK-NEXT: ( 1, 0, 2, 0 )
// CHECK-NEXT: ( 1, 3, 6 )

#row = affine_map<(i, j, k) -> (i, k)>
#column = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @work(%four: memref<4xi32>, %contract: memref<4xf32>, %transpose: memref<3x2xf32>, %rows: memref<2xf32>,
                   %outer: memref<2x2xi32>, %compress: memref<4xi32>, %expand: memref<4xi32>,
                   %scatter: memref<4xi32>, %read: memref<1x3xi32>, %bits: memref<2xi32>,
                   %halves: memref<4xi16>, %scan: memref<3xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %seven = arith.constant 7 : i32
      %a = arith.constant dense<[[1., 2., 3.], [4., 5., 6.]]> : vector<2x3xf32>
      %b = arith.constant dense<[[7., 8.], [9., 10.], [11., 12.]]> : vector<3x2xf32>
      %z = arith.constant dense<0.> : vector<2x2xf32>
      %m = vector.contract {indexing_maps = [#row, #column, #sum], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %z : vector<2x3xf32>, vector<3x2xf32> into vector<2x2xf32>
      %flat = vector.shape_cast %m : vector<2x2xf32> to vector<4xf32>
      vector.store %flat, %contract[%c0] : memref<4xf32>, vector<4xf32>
      %t = vector.transpose %a, [1, 0] : vector<2x3xf32> to vector<3x2xf32>
      vector.store %t, %transpose[%c0, %c0] : memref<3x2xf32>, vector<3x2xf32>
      %r0 = arith.constant dense<0.> : vector<2xf32>
      %r = vector.multi_reduction <add>, %a, %r0 [1] : vector<2x3xf32> to vector<2xf32>
      vector.store %r, %rows[%c0] : memref<2xf32>, vector<2xf32>
      %p = arith.constant dense<[1, 2]> : vector<2xi32>
      %q = arith.constant dense<[3, 4]> : vector<2xi32>
      %o = vector.outerproduct %p, %q : vector<2xi32>, vector<2xi32>
      vector.store %o, %outer[%c0, %c0] : memref<2x2xi32>, vector<2x2xi32>
      %all = vector.load %four[%c0] : memref<4xi32>, vector<4xi32>
      %less = arith.constant dense<-1> : vector<4xi32>
      vector.store %less, %compress[%c0] : memref<4xi32>, vector<4xi32>
      %odd = arith.constant dense<[false, true, false, true]> : vector<4xi1>
      vector.compressstore %compress[%c0], %odd, %all : memref<4xi32>, vector<4xi1>, vector<4xi32>
      %but = arith.constant dense<[true, false, true, true]> : vector<4xi1>
      %e = vector.expandload %four[%c0], %but, %less : memref<4xi32>, vector<4xi1>, vector<4xi32> into vector<4xi32>
      vector.store %e, %expand[%c0] : memref<4xi32>, vector<4xi32>
      %none = arith.constant dense<0> : vector<4xi32>
      vector.store %none, %scatter[%c0] : memref<4xi32>, vector<4xi32>
      %to = arith.constant dense<[3, 2, 1, 0]> : vector<4xi32>
      %which = arith.constant dense<[true, true, false, true]> : vector<4xi1>
      vector.scatter %scatter[%c0][%to], %which, %all : memref<4xi32>, vector<4xi32>, vector<4xi1>, vector<4xi32>
      // Past the end of the memory it is the padding.
      %w = vector.transfer_read %four[%c2], %seven : memref<4xi32>, vector<3xi32>
      %w1 = vector.broadcast %w : vector<3xi32> to vector<1x3xi32>
      vector.transfer_write %w1, %read[%c0, %c0] : vector<1x3xi32>, memref<1x3xi32>
      %f = arith.constant dense<[1., 2.]> : vector<2xf32>
      %fb = vector.bitcast %f : vector<2xf32> to vector<2xi32>
      vector.store %fb, %bits[%c0] : memref<2xi32>, vector<2xi32>
      %h = vector.bitcast %p : vector<2xi32> to vector<4xi16>
      vector.store %h, %halves[%c0] : memref<4xi16>, vector<4xi16>
      %s = arith.constant dense<[[1], [2], [3]]> : vector<3x1xi32>
      %s0 = arith.constant dense<0> : vector<1xi32>
      %sc:2 = vector.scan <add>, %s, %s0 {inclusive = true, reduction_dim = 0 : i64} : vector<3x1xi32>, vector<1xi32>
      %sf = vector.shape_cast %sc#0 : vector<3x1xi32> to vector<3xi32>
      vector.store %sf, %scan[%c0] : memref<3xi32>, vector<3xi32>
      gpu.return
    }
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %tens = arith.constant dense<[10, 20, 30, 40]> : vector<4xi32>
    %four = memref.alloc() : memref<4xi32>
    vector.store %tens, %four[%c0] : memref<4xi32>, vector<4xi32>
    %a = memref.alloc() : memref<4xf32>
    %b = memref.alloc() : memref<3x2xf32>
    %c = memref.alloc() : memref<2xf32>
    %d = memref.alloc() : memref<2x2xi32>
    %e = memref.alloc() : memref<4xi32>
    %f = memref.alloc() : memref<4xi32>
    %g = memref.alloc() : memref<4xi32>
    %h = memref.alloc() : memref<1x3xi32>
    %i = memref.alloc() : memref<2xi32>
    %j = memref.alloc() : memref<4xi16>
    %k = memref.alloc() : memref<3xi32>
    gpu.launch_func @kernels::@work blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%four : memref<4xi32>, %a : memref<4xf32>, %b : memref<3x2xf32>, %c : memref<2xf32>, %d : memref<2x2xi32>,
             %e : memref<4xi32>, %f : memref<4xi32>, %g : memref<4xi32>, %h : memref<1x3xi32>, %i : memref<2xi32>,
             %j : memref<4xi16>, %k : memref<3xi32>)
    %va = vector.load %a[%c0] : memref<4xf32>, vector<4xf32>
    vector.print %va : vector<4xf32>
    %vb = vector.load %b[%c0, %c0] : memref<3x2xf32>, vector<3x2xf32>
    vector.print %vb : vector<3x2xf32>
    %vc = vector.load %c[%c0] : memref<2xf32>, vector<2xf32>
    vector.print %vc : vector<2xf32>
    %vd = vector.load %d[%c0, %c0] : memref<2x2xi32>, vector<2x2xi32>
    vector.print %vd : vector<2x2xi32>
    %ve = vector.load %e[%c0] : memref<4xi32>, vector<4xi32>
    vector.print %ve : vector<4xi32>
    %vf = vector.load %f[%c0] : memref<4xi32>, vector<4xi32>
    vector.print %vf : vector<4xi32>
    %vg = vector.load %g[%c0] : memref<4xi32>, vector<4xi32>
    vector.print %vg : vector<4xi32>
    %vh = vector.load %h[%c0, %c0] : memref<1x3xi32>, vector<1x3xi32>
    vector.print %vh : vector<1x3xi32>
    %vi = vector.load %i[%c0] : memref<2xi32>, vector<2xi32>
    vector.print %vi : vector<2xi32>
    %vj = vector.load %j[%c0] : memref<4xi16>, vector<4xi16>
    vector.print %vj : vector<4xi16>
    %vk = vector.load %k[%c0] : memref<3xi32>, vector<3xi32>
    vector.print %vk : vector<3xi32>
    return
  }
}
