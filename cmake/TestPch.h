// RuntimePch.h for unit tests.
#include "cmake/RuntimePch.h"

#include <gtest/gtest.h>
