// Whoever has signed in again is led back to their form at once. Without script there is a button.
document.querySelector("#again").requestSubmit();
