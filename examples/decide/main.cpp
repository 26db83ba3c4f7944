// Asks one question about a message: decide RELEASE_FOLDER
#include <treble/engine.h>
#include <treble/error.h>
#include <treble/record.h>
#include <treble/version.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: decide RELEASE_FOLDER\n";
    return 2;
  }
  try {
    const treble::Engine engine(argv[1]);
    const treble::Request request = treble::parse_request(R"({
      "state": "Our checkout started returning errors and orders are blocked.",
      "questions": {
        "team": {
          "type": "choice",
          "instructions": "Which team should handle the message?",
          "criteria": {"billing": "Payments or invoices", "technical": "Bugs or outages"}
        }
      }
    })");

    const treble::Answers answers = engine.answer(request);
    const treble::Answer& team = answers.answers.front();
    std::cout << "treble " << treble::version() << ", " << answers.input_tokens << " tokens\n";
    for (std::size_t i = 0; i < team.options.size(); ++i) {
      std::cout << team.options[i].id << ": " << team.probabilities[i] << '\n';
    }
  } catch (const treble::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
