var e=localStorage.getItem("freshet-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e);
