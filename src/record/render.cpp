#include "record/render.h"

#include <algorithm>

namespace treble {
namespace {

Json sort_keys(const Json& value) {
  if (value.is_array()) {
    Json::Array items;
    for (const Json& item : value.as_array()) items.push_back(sort_keys(item));
    return items;
  }
  if (value.is_object()) {
    std::vector<const Json::Member*> members;
    for (const Json::Member& member : value.as_object()) members.push_back(&member);
    // The order of UTF-8 bytes is the order of code points; std::string compares bytes as unsigned.
    std::stable_sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    Json::Object sorted;
    for (const Json::Member* member : members) {
      if (!sorted.empty() && sorted.back().first == member->first) sorted.pop_back();
      sorted.emplace_back(member->first, sort_keys(member->second));
    }
    return sorted;
  }
  return value;
}

}  // namespace

std::string render(const Json& value) {
  return value.is_string() ? value.as_string() : dump_json(sort_keys(value));
}

}  // namespace treble
