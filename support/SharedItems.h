// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_SHAREDITEMS_H
#define MGPU_SUPPORT_SHAREDITEMS_H

// A vector whose copies share their items, for values of which many versions
// differ in few items.

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace mgpu {

/// Used like a std::vector<T>. Copying one costs a pointer an item. Access that
/// may change an item first makes it this vector's own, so read through a const
/// reference where copies exist. A reference that may change an item must not
/// be used any more once the vector was copied.
template <class T>
class SharedItems {
  using Items = std::vector<std::shared_ptr<T>>;

  /// A random-access iterator; `Owner` is const for those that only read.
  template <class Owner, class Value>
  class Iterator {
  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Value *;
    using reference = Value &;

    Iterator() = default;
    Iterator(Owner &owner, size_t at) : owner(&owner), at(at) {}
    operator Iterator<const Owner, const Value>() const { return {*owner, at}; }

    Value &operator*() const { return (*owner)[at]; }
    Value *operator->() const { return &(*owner)[at]; }
    Value &operator[](difference_type by) const { return *(*this + by); }
    Iterator &operator+=(difference_type by) {
      at = size_t(difference_type(at) + by);
      return *this;
    }
    Iterator &operator-=(difference_type by) { return *this += -by; }
    Iterator &operator++() { return *this += 1; }
    Iterator &operator--() { return *this -= 1; }
    Iterator operator++(int) { return std::exchange(*this, *this + 1); }
    Iterator operator--(int) { return std::exchange(*this, *this - 1); }
    friend Iterator operator+(Iterator it, difference_type by) {
      return it += by;
    }
    friend Iterator operator+(difference_type by, Iterator it) {
      return it += by;
    }
    friend Iterator operator-(Iterator it, difference_type by) {
      return it -= by;
    }
    friend difference_type operator-(Iterator a, Iterator b) {
      return difference_type(a.at) - difference_type(b.at);
    }
    friend bool operator==(Iterator a, Iterator b) { return a.at == b.at; }
    friend auto operator<=>(Iterator a, Iterator b) { return a.at <=> b.at; }

  private:
    Owner *owner = nullptr;
    size_t at = 0;
  };

public:
  using value_type = T;
  using iterator = Iterator<SharedItems, T>;
  using const_iterator = Iterator<const SharedItems, const T>;

  SharedItems() = default;
  SharedItems(std::initializer_list<T> list)
      : SharedItems(list.begin(), list.end()) {}
  template <class It>
  SharedItems(It first, It last) {
    for (; first != last; ++first)
      push_back(*first);
  }

  size_t size() const { return items.size(); }
  bool empty() const { return items.empty(); }
  void reserve(size_t count) { items.reserve(count); }
  void shrink_to_fit() { items.shrink_to_fit(); }
  void clear() { items.clear(); }
  void resize(size_t count) {
    items.resize(std::min(count, size()));
    while (size() < count)
      emplace_back();
  }

  const T &operator[](size_t i) const { return *items[i]; }
  T &operator[](size_t i) {
    if (items[i].use_count() > 1)
      items[i] = std::make_shared<T>(*items[i]);
    return *items[i];
  }
  const T &front() const { return *items.front(); }
  const T &back() const { return *items.back(); }
  T &front() { return (*this)[0]; }
  T &back() { return (*this)[size() - 1]; }

  void push_back(T item) { emplace_back(std::move(item)); }
  template <class... Of>
  T &emplace_back(Of &&...of) {
    return *items.emplace_back(std::make_shared<T>(std::forward<Of>(of)...));
  }
  /// Appends item `i` of `other` and shares it.
  void share(const SharedItems &other, size_t i) {
    items.push_back(other.items[i]);
  }
  void pop_back() { items.pop_back(); }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    const std::ptrdiff_t from = first - std::as_const(*this).begin(),
                         to = last - std::as_const(*this).begin();
    items.erase(items.begin() + from, items.begin() + to);
    return begin() + from;
  }
  iterator insert(const_iterator at, T item) {
    const std::ptrdiff_t k = at - std::as_const(*this).begin();
    items.insert(items.begin() + k, std::make_shared<T>(std::move(item)));
    return begin() + k;
  }

  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size()}; }
  iterator begin() { return {*this, 0}; }
  iterator end() { return {*this, size()}; }

  bool operator==(const SharedItems &other) const {
    return std::ranges::equal(
        items, other.items,
        [](const auto &a, const auto &b) { return a == b || *a == *b; });
  }

private:
  Items items;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_SHAREDITEMS_H
